/* A synthetic libnvidia-ml.so.1: GPUs that don't exist, for the real nvidia-ml-py to read.
 *
 * The scenario is a text file of "key=value" lines that SYNTHETIC_NVML names; it is read again
 * when it changes, so that a test can lose a GPU, move the clock or raise an XID while the reader
 * runs. Without a file, the defaults below hold and the clock is real. A symbol is left out of
 * the library by -DWITHOUT_<what>, to look like an older driver.
 *
 * Structures are written after nvidia-ml-py's ctypes definitions, which are the documented ABI.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum {
  SUCCESS = 0,
  UNINITIALIZED = 1,
  INVALID_ARGUMENT = 2,
  NOT_SUPPORTED = 3,
  NO_PERMISSION = 4,
  NOT_FOUND = 6,
  INSUFFICIENT_SIZE = 7,
  DRIVER_NOT_LOADED = 9,
  TIMEOUT = 10,
  GPU_IS_LOST = 15,
  VERSION_MISMATCH = 25,
  UNKNOWN = 999
};
enum { MOST_GPUS = 16, MOST_MIG = 7 };
#define ALL_LINKS 0xffffffffu

/* ---- the scenario ------------------------------------------------------------------------- */

static struct {
  int gpus;          /* how many there are */
  int nvlinks;       /* links of each GPU */
  int nvlink5;       /* 1: bytes by fields 202 and 204, link by link, and no others */
  int nvlink_switch; /* 1: links lead to a switch; 0: round robin to the other GPUs */
  int link_down;     /* number of a link that is down on each GPU; -1: none */
  int gpm;           /* 1: Hopper and later */
  int pcie_fields;   /* 1: fields 197 and 198, 64 bits; 32: they say they have 32 bits; 0: none */
  int pcie_generation_now;
  int mig;        /* number of the GPU in MIG mode, with two instances; -1: none */
  int lost;       /* number of a GPU that is lost; -1: none */
  int unknown;    /* number of a GPU whose memory gives an unknown error; -1: none */
  int denied;     /* 1: this user may not read ECC and processes */
  int unloaded;   /* 1: the driver is not loaded */
  int reloads;    /* a change: the driver was loaded again, the library must be opened again */
  double clock_s; /* what time it is; -1: real time since the start */
  double count_from; /* where the PCIe counters start, in bytes */
  double sm;         /* SM active and the like, percent */
  double tensor;
  double dram;
  char xids[1024]; /* "gpu:code,gpu:code,...": events so far */
} now;

static struct timespec file_time;
static ino_t file_inode;
static struct timespec start;
static int has_defaults, initialized, loads_seen, event_sets;
static long slow_calls;

static void defaults(void) {
  memset(&now, 0, sizeof now);
  has_defaults = 1;
  now.gpus = 8;
  now.nvlinks = 18;
  now.nvlink_switch = 1;
  now.link_down = now.mig = now.lost = now.unknown = -1;
  now.gpm = now.pcie_fields = 1;
  now.pcie_generation_now = 5;
  now.clock_s = -1;
  now.sm = 91, now.tensor = 42, now.dram = 71;
}

static void set(const char *key, const char *value) {
#define INT(name) \
  if (!strcmp(key, #name)) now.name = atoi(value)
#define REAL(name) \
  if (!strcmp(key, #name)) now.name = atof(value)
  INT(gpus);
  INT(nvlinks);
  INT(nvlink5);
  INT(nvlink_switch);
  INT(link_down);
  INT(gpm);
  INT(pcie_fields);
  INT(pcie_generation_now);
  INT(mig);
  INT(lost);
  INT(unknown);
  INT(denied);
  INT(unloaded);
  INT(reloads);
  REAL(clock_s);
  REAL(count_from);
  REAL(sm);
  REAL(tensor);
  REAL(dram);
  if (!strcmp(key, "xids")) snprintf(now.xids, sizeof now.xids, "%s", value);
}

static void refresh(void) {
  const char *path = getenv("SYNTHETIC_NVML");
  struct stat seen;
  if (!has_defaults) defaults();
  if (!path || stat(path, &seen)) return;
  if (seen.st_ino == file_inode && seen.st_mtim.tv_sec == file_time.tv_sec &&
      seen.st_mtim.tv_nsec == file_time.tv_nsec)
    return;
  FILE *file = fopen(path, "r");
  if (!file) return;
  char line[2048];
  defaults();
  while (fgets(line, sizeof line, file)) {
    char *value = strchr(line, '=');
    if (!value) continue;
    *value++ = 0;
    value[strcspn(value, "\n")] = 0;
    set(line, value);
  }
  fclose(file);
  file_inode = seen.st_ino;
  file_time = seen.st_mtim;
}

static double elapsed_s(void) {
  if (now.clock_s >= 0) return now.clock_s;
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)(t.tv_sec - start.tv_sec) + (double)(t.tv_nsec - start.tv_nsec) / 1e9;
}

/* ---- devices ------------------------------------------------------------------------------ */

typedef struct {
  int gpu;
  int mig; /* 1, 2: instance; 0: the whole GPU */
} device_t;
static device_t devices[MOST_GPUS][1 + MOST_MIG];

static int check(const device_t *device) {
  refresh();
  if (now.unloaded || now.reloads != loads_seen || !initialized) return UNINITIALIZED;
  if (!device || device->gpu >= now.gpus) return INVALID_ARGUMENT;
  return device->gpu == now.lost ? GPU_IS_LOST : SUCCESS;
}
#define CHECK(device)              \
  do {                             \
    int code = check(device);      \
    if (code != SUCCESS) return code; \
  } while (0)
#define WHOLE(device)                        \
  do {                                       \
    CHECK(device);                           \
    if ((device)->mig) return NOT_SUPPORTED; \
  } while (0)

int nvmlInitWithFlags(unsigned flags) {
  (void)flags;
  refresh();
  if (now.unloaded) return DRIVER_NOT_LOADED;
  if (!initialized++) clock_gettime(CLOCK_MONOTONIC, &start);
  loads_seen = now.reloads;
  for (int gpu = 0; gpu < MOST_GPUS; gpu++)
    for (int mig = 0; mig <= MOST_MIG; mig++) devices[gpu][mig] = (device_t){gpu, mig};
  return SUCCESS;
}

int nvmlShutdown(void) {
  if (!initialized) return UNINITIALIZED;
  if (!--initialized) event_sets = 0;
  return SUCCESS;
}

const char *nvmlErrorString(int code) {
  (void)code;
  return "synthetic error";
}

int nvmlSystemGetDriverVersion(char *text, unsigned size) {
  snprintf(text, size, "570.00");
  return SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned *count) {
  refresh();
  if (now.unloaded || now.reloads != loads_seen || !initialized) return UNINITIALIZED;
  *count = (unsigned)now.gpus;
  return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, device_t **device) {
  if (index >= MOST_GPUS) return INVALID_ARGUMENT;
  CHECK(&devices[index][0]);
  *device = &devices[index][0];
  return SUCCESS;
}

int nvmlDeviceGetUUID(device_t *device, char *text, unsigned size) {
  CHECK(device);
  snprintf(text, size, "%s-%08x-%04x-0000-0000-000000000000", device->mig ? "MIG" : "GPU",
           device->gpu, device->mig);
  return SUCCESS;
}

int nvmlDeviceGetName(device_t *device, char *text, unsigned size) {
  CHECK(device);
  snprintf(text, size, "NVIDIA H100 80GB HBM3%s", device->mig ? " MIG 1g.10gb" : "");
  return SUCCESS;
}

int nvmlDeviceGetMinorNumber(device_t *device, unsigned *minor) {
  WHOLE(device);
  *minor = (unsigned)device->gpu;
  return SUCCESS;
}

typedef struct {
  char legacy[16];
  unsigned domain, bus, device, id, subsystem;
  char text[32];
} pci_t;

static void pci_of(int gpu, pci_t *pci) {
  memset(pci, 0, sizeof *pci);
  pci->bus = 0x1bu + (unsigned)gpu;
  snprintf(pci->text, sizeof pci->text, "00000000:%02X:00.0", pci->bus);
  snprintf(pci->legacy, sizeof pci->legacy, "0000:%02X:00.0", pci->bus);
}

int nvmlDeviceGetPciInfo_v3(device_t *device, pci_t *pci) {
  WHOLE(device);
  pci_of(device->gpu, pci);
  return SUCCESS;
}

/* ---- memory, processes -------------------------------------------------------------------- */

typedef struct {
  unsigned version;
  unsigned long long total, reserved, free, used;
} memory_v2_t;

static void memory_of(const device_t *device, memory_v2_t *memory) {
  memory->total = device->mig ? 10468982784ull : 85520809984ull;
  memory->reserved = device->mig ? 0 : 551550976ull;
  memory->used = device->mig ? 5234491392ull : 69448449024ull;
  memory->free = memory->total - memory->used - memory->reserved;
}

#ifndef WITHOUT_MEMORY_V2
int nvmlDeviceGetMemoryInfo_v2(device_t *device, memory_v2_t *memory) {
  CHECK(device);
  if (device->gpu == now.unknown) return UNKNOWN;
  if (memory->version != (sizeof *memory | 2u << 24)) return VERSION_MISMATCH;
  memory_of(device, memory);
  return SUCCESS;
}
#endif

int nvmlDeviceGetMemoryInfo(device_t *device, unsigned long long *total_free_used) {
  CHECK(device);
  if (device->gpu == now.unknown) return UNKNOWN;
  memory_v2_t memory;
  memory_of(device, &memory);
  total_free_used[0] = memory.total;
  total_free_used[1] = memory.free;
  total_free_used[2] = memory.used + memory.reserved;
  return SUCCESS;
}

typedef struct {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
} process_t;

int nvmlDeviceGetComputeRunningProcesses_v3(device_t *device, unsigned *count, process_t *list) {
  CHECK(device);
  if (now.denied) return NO_PERMISSION;
  unsigned room = *count;
  *count = 1;
  if (room < 1 || !list) return INSUFFICIENT_SIZE;
  memory_v2_t memory;
  memory_of(device, &memory);
  list[0] = (process_t){4000u + (unsigned)(device->gpu * 10 + device->mig), memory.used, 0, 0};
  return SUCCESS;
}

/* ---- what it is doing --------------------------------------------------------------------- */

int nvmlDeviceGetUtilizationRates(device_t *device, unsigned *gpu_memory) {
  WHOLE(device);
  gpu_memory[0] = now.sm > 0 ? 97 : 0;
  gpu_memory[1] = 54;
  return SUCCESS;
}

static int engine(device_t *device, unsigned *utilization, unsigned *period_us) {
  WHOLE(device);
  *utilization = 0;
  *period_us = 167000;
  return SUCCESS;
}

int nvmlDeviceGetEncoderUtilization(device_t *device, unsigned *utilization, unsigned *period_us) {
  return engine(device, utilization, period_us);
}

int nvmlDeviceGetDecoderUtilization(device_t *device, unsigned *utilization, unsigned *period_us) {
  return engine(device, utilization, period_us);
}

int nvmlDeviceGetClockInfo(device_t *device, int clock, unsigned *megahertz) {
  WHOLE(device);
  *megahertz = clock == 1 ? 1980 : 2619;
  return SUCCESS;
}

int nvmlDeviceGetTemperature(device_t *device, int sensor, unsigned *celsius) {
  (void)sensor;
  WHOLE(device);
  *celsius = 55u + (unsigned)device->gpu;
  return SUCCESS;
}

int nvmlDeviceGetPowerUsage(device_t *device, unsigned *milliwatts) {
  WHOLE(device);
  *milliwatts = 412500;
  return SUCCESS;
}

int nvmlDeviceGetCurrentClocksEventReasons(device_t *device, unsigned long long *mask) {
  WHOLE(device);
  *mask = 0x4; /* software power cap */
  return SUCCESS;
}

/* ---- PCIe --------------------------------------------------------------------------------- */

static int number(device_t *device, int value, unsigned *to) {
  WHOLE(device);
  *to = (unsigned)value;
  return SUCCESS;
}

int nvmlDeviceGetMaxPcieLinkGeneration(device_t *device, unsigned *value) {
  return number(device, 5, value);
}

int nvmlDeviceGetCurrPcieLinkGeneration(device_t *device, unsigned *value) {
  refresh();
  return number(device, now.pcie_generation_now, value);
}

int nvmlDeviceGetMaxPcieLinkWidth(device_t *device, unsigned *value) {
  return number(device, 16, value);
}

int nvmlDeviceGetCurrPcieLinkWidth(device_t *device, unsigned *value) {
  return number(device, 16, value);
}

/* The real one takes 20 ms; this one counts instead, for tests to see that it was not called. */
int nvmlDeviceGetPcieThroughput(device_t *device, int counter, unsigned *kilobytes_per_second) {
  WHOLE(device);
  slow_calls++;
  *kilobytes_per_second = counter ? 2441406 : 1464843;
  return SUCCESS;
}

long synthetic_slow_calls(void) { return slow_calls; }

/* ---- NVLink ------------------------------------------------------------------------------- */

static int check_link(device_t *device, unsigned link) {
  WHOLE(device);
  return (int)link < now.nvlinks ? SUCCESS : INVALID_ARGUMENT;
}
#define CHECK_LINK(device, link)         \
  do {                                   \
    int code = check_link(device, link); \
    if (code != SUCCESS) return code;    \
  } while (0)

int nvmlDeviceGetNvLinkState(device_t *device, unsigned link, unsigned *active) {
  CHECK_LINK(device, link);
  *active = (int)link != now.link_down;
  return SUCCESS;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(device_t *device, unsigned link, int *type) {
  CHECK_LINK(device, link);
  *type = now.nvlink_switch ? 2 : 0;
  return SUCCESS;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(device_t *device, unsigned link, pci_t *pci) {
  CHECK_LINK(device, link);
  if (now.gpus < 2) return NOT_SUPPORTED;
  pci_of((device->gpu + 1 + (int)link % (now.gpus - 1)) % now.gpus, pci);
  return SUCCESS;
}

int nvmlDeviceGetNvLinkErrorCounter(device_t *device, unsigned link, int counter,
                                    unsigned long long *count) {
  CHECK_LINK(device, link);
  if (now.nvlink5) return NOT_SUPPORTED;
  *count = link == 3 && counter == 0 ? 2 : 0;
  return SUCCESS;
}

int nvmlDeviceGetTopologyCommonAncestor(device_t *one, device_t *other, int *level) {
  WHOLE(one);
  WHOLE(other);
  int a = one->gpu, b = other->gpu;
  *level = a == b ? 0 : a / 2 == b / 2 ? 10 : a / 4 == b / 4 ? 40 : 50;
  return SUCCESS;
}

int nvmlDeviceGetP2PStatus(device_t *one, device_t *other, int capability, int *status) {
  (void)capability;
  WHOLE(one);
  WHOLE(other);
  *status = now.nvlinks ? 0 : 5;
  return SUCCESS;
}

/* ---- field values ------------------------------------------------------------------------- */

typedef union {
  double real;
  unsigned small;
  unsigned long long large;
} value_t;

typedef struct {
  unsigned field, scope;
  long long timestamp, latency;
  int type, code;
  value_t value;
} field_t;

static void answer(field_t *field) {
  const double t = elapsed_s();
  const int all = field->scope == ALL_LINKS;
  const double links = all ? now.nvlinks : 1;
  const int some = now.nvlinks > 0;
  enum { SMALL = 1, LARGE = 3 };
  double value = 0;
  field->code = SUCCESS;
  field->type = LARGE;
  switch (field->field) {
    case 3: value = 7; break; /* corrected, volatile */
    case 4: value = 0; break;
    case 5: value = 21; break;
    case 6: value = 1; break;
    case 74: value = t * 1e9 / 10; break; /* power cap: a tenth of the time */
    case 75: value = 0; break;
    case 82: value = 61; field->type = SMALL; break;
    case 83: value = t * 412500; break;
    case 90: value = 26562; field->type = SMALL; break;
    case 91: value = now.nvlinks; field->type = SMALL; break;
    case 94: value = 3; break;
    case 138: value = t * 5e6 * links; field->code = some && !now.nvlink5 ? 0 : NOT_SUPPORTED; break;
    case 139: value = t * 6e6 * links; field->code = some && !now.nvlink5 ? 0 : NOT_SUPPORTED; break;
    case 142: value = 1; field->type = SMALL; break;
    case 143: case 144: case 145: value = 0; field->type = SMALL; break;
    case 164: value = now.nvlink5 ? 53125 : 26562; field->type = SMALL; break;
    case 197: value = now.count_from + t * 1.5e9; break;
    case 198: value = now.count_from + t * 2.5e9; break;
    case 202: value = t * 40e9; field->code = now.nvlink5 && !all ? 0 : NOT_SUPPORTED; break;
    case 204: value = t * 30e9; field->code = now.nvlink5 && !all ? 0 : NOT_SUPPORTED; break;
    case 208: case 215: case 221: value = 1; field->code = now.nvlink5 ? 0 : NOT_SUPPORTED; break;
    default: field->code = NOT_SUPPORTED;
  }
  if (field->field == 197 || field->field == 198) {
    if (!now.pcie_fields) field->code = NOT_SUPPORTED;
    if (now.pcie_fields == 32) field->type = SMALL;
  }
  if (now.denied && field->field >= 3 && field->field <= 6) field->code = NO_PERMISSION;
  if (field->type == SMALL)
    field->value.small = (unsigned)(unsigned long long)value;
  else if (value >= 0x1p64)
    field->value.large = (unsigned long long)(value - 0x1p64); /* it wraps */
  else
    field->value.large = (unsigned long long)value;
}

int nvmlDeviceGetFieldValues(device_t *device, int count, field_t *fields) {
  WHOLE(device);
  for (int i = 0; i < count; i++) answer(&fields[i]);
  return SUCCESS;
}

/* ---- GPM ---------------------------------------------------------------------------------- */

typedef struct {
  unsigned metric;
  int code;
  double value;
  const char *short_name, *long_name, *unit;
} gpm_metric_t;
typedef struct {
  unsigned version, count;
  double *first, *second;
  gpm_metric_t metrics[];
} gpm_request_t;

#ifndef WITHOUT_GPM
int nvmlGpmQueryDeviceSupport(device_t *device, unsigned *version_supported) {
  CHECK(device);
  version_supported[1] = (unsigned)now.gpm;
  return SUCCESS;
}

int nvmlGpmSampleAlloc(double **sample) {
  *sample = calloc(1, sizeof **sample);
  return SUCCESS;
}

int nvmlGpmSampleFree(double *sample) {
  free(sample);
  return SUCCESS;
}

int nvmlGpmSampleGet(device_t *device, double *sample) {
  WHOLE(device);
  *sample = elapsed_s();
  return SUCCESS;
}

int nvmlGpmMigSampleGet(device_t *device, unsigned instance, double *sample) {
  WHOLE(device);
  if (instance < 1 || instance > 2) return INVALID_ARGUMENT;
  *sample = elapsed_s();
  return SUCCESS;
}

static int gpm_value(unsigned metric, double *value) {
  const int links = now.nvlinks > 0;
  switch (metric) {
    case 1: *value = 98; return SUCCESS;
    case 2: *value = now.sm; return SUCCESS;
    case 3: *value = 33; return SUCCESS;
    case 5: *value = now.tensor; return SUCCESS;
    case 10: *value = now.dram; return SUCCESS;
    case 20: *value = 1430.5; return SUCCESS;
    case 21: *value = 2384; return SUCCESS;
    case 60: *value = 86784; return links ? SUCCESS : NOT_SUPPORTED;
    case 61: *value = 85831; return links ? SUCCESS : NOT_SUPPORTED;
    case 100: *value = 0.0 / 0.0; return SUCCESS; /* a blank */
    default: return NOT_SUPPORTED;
  }
}

int nvmlGpmMetricsGet(gpm_request_t *request) {
  if (request->version != 1) return VERSION_MISMATCH;
  if (!request->first || !request->second || *request->second - *request->first < 0.1)
    return INVALID_ARGUMENT;
  for (unsigned i = 0; i < request->count; i++)
    request->metrics[i].code = gpm_value(request->metrics[i].metric, &request->metrics[i].value);
  return SUCCESS;
}
#endif

/* ---- MIG: two instances of 1g.10gb -------------------------------------------------------- */

int nvmlDeviceGetMigMode(device_t *device, unsigned *current, unsigned *pending) {
  WHOLE(device);
  *current = *pending = device->gpu == now.mig;
  return SUCCESS;
}

int nvmlDeviceGetMaxMigDeviceCount(device_t *device, unsigned *count) {
  return number(device, MOST_MIG, count);
}

int nvmlDeviceGetMigDeviceHandleByIndex(device_t *device, unsigned index, device_t **mig) {
  WHOLE(device);
  if (device->gpu != now.mig || index > 1) return NOT_FOUND;
  *mig = &devices[device->gpu][1 + index];
  return SUCCESS;
}

int nvmlDeviceGetGpuInstanceId(device_t *device, unsigned *id) {
  CHECK(device);
  if (!device->mig) return NOT_SUPPORTED;
  *id = (unsigned)device->mig;
  return SUCCESS;
}

/* ---- events ------------------------------------------------------------------------------- */

typedef struct {
  device_t *device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
} event_t;

#ifndef WITHOUT_EVENTS
static int events_given;

int nvmlEventSetCreate(void **set) {
  event_sets = 1;
  *set = &event_sets;
  return SUCCESS;
}

int nvmlEventSetFree(void *set) {
  (void)set;
  return SUCCESS;
}

int nvmlDeviceRegisterEvents(device_t *device, unsigned long long types, void *set) {
  (void)types, (void)set;
  WHOLE(device);
  return event_sets ? SUCCESS : INVALID_ARGUMENT; /* a set does not outlive the library */
}

int nvmlEventSetWait_v2(void *set, event_t *event, unsigned timeout_ms) {
  (void)set, (void)timeout_ms;
  refresh();
  if (!event_sets) return INVALID_ARGUMENT;
  const char *next = now.xids;
  for (int skipped = 0; next && skipped < events_given; skipped++) {
    next = strchr(next, ',');
    if (next) next++;
  }
  int gpu, code;
  if (!next || sscanf(next, "%d:%d", &gpu, &code) != 2) return TIMEOUT;
  events_given++;
  *event = (event_t){&devices[gpu][0], 0x8, (unsigned long long)code, ALL_LINKS, ALL_LINKS};
  return SUCCESS;
}
#endif
