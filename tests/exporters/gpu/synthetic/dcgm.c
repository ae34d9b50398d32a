/* A synthetic libdcgm.so.4: GPUs that don't exist, for the real pydcgm to read.
 *
 * The scenario is a text file of "key=value" lines that SYNTHETIC_DCGM names; it is read again
 * when it changes, so that a test can kill the engine, lose a GPU or raise an XID while the
 * reader runs. Without a file, the defaults below hold. A key "gpu:field" sets one value:
 * a number, a text, "blank", "not_found", "not_supported", "not_permitted", or "status:-17".
 *
 * Time is counted in XID events: the n-th comes at n microseconds, and nothing else moves it.
 *
 * Structures are written after pydcgm's ctypes definitions, which are the documented ABI; of the
 * large ones only what is filled in is here, by its offset. DCGM 3.x and 4.x share them, but for
 * the NVLinks' states, of which each version has more.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
  OK = 0,
  BAD_PARAMETER = -1,
  NOT_CONFIGURED = -5,
  UNINITIALIZED = -10,
  VERSION_MISMATCH = -12,
  UNKNOWN_FIELD = -13,
  NO_DATA = -14,
  NOT_WATCHED = -16,
  GPU_IS_LOST = -18,
  CONNECTION_NOT_VALID = -21,
  MAX_LIMIT = -24,
  DUPLICATE_KEY = -26,
  PROFILING_NOT_SUPPORTED = -36
};
enum { GPU = 1, GPU_INSTANCE = 4, LINK = 6 }; /* kinds of entity */
enum { MOST_GPUS = 16, MOST_LINKS = 18, INSTANCES = 2 };
enum { MOST_SETS = 256, MOST_EVENTS = 64, MOST_FIELDS = 128, MOST_GROUPS = 64 };
enum { UUID = 54, NAME = 50, MINOR = 55, XID = 230 };
#define INT64_BLANK 0x7ffffffffffffff0ll
#define FP64_BLANK 140737488355328.0
#define VERSIONED(size, number) ((unsigned)(size) | (unsigned)(number) << 24)

/* ---- fields ------------------------------------------------------------------------------- */

typedef struct {
  int id;
  char type; /* d: double, i: integer, s: text */
  double number;
  const char *text;
} field_t;

static const field_t fields[] = {
    {1, 's', 0, "570.86.15"}, {2, 's', 0, "12.570.86.15"},
    {NAME, 's', 0, ""}, {51, 's', 0, "Tesla"}, {53, 's', 0, "1650123"}, {UUID, 's', 0, ""},
    {MINOR, 'i', 0, 0}, {85, 's', 0, "96.00.74.00.01"},
    {100, 'i', 1980, 0}, {101, 'i', 2619, 0}, {112, 'i', 4, 0}, {140, 'i', 61, 0},
    {150, 'i', 55, 0}, {155, 'd', 412.5, 0}, {156, 'i', 987654321, 0},
    {202, 'i', 3, 0}, {203, 'i', 97, 0}, {204, 'i', 54, 0}, {206, 'i', 0, 0}, {207, 'i', 12, 0},
    {XID, 'i', 0, 0}, {235, 'i', 5, 0}, {236, 'i', 16, 0}, {237, 'i', 4, 0}, {238, 'i', 16, 0},
    {240, 'i', 2.5e9, 0}, {241, 'i', 0, 0}, {242, 'i', 0, 0}, {243, 'i', 0, 0},
    {244, 'i', 0, 0}, {245, 'i', 0, 0},
    {250, 'i', 81559, 0}, {251, 'i', 20000, 0}, {252, 'i', 61000, 0}, {253, 'i', 559, 0},
    {310, 'i', 7, 0}, {311, 'i', 0, 0}, {312, 'i', 9, 0}, {313, 'i', 1, 0},
    {393, 'i', 0, 0}, {394, 'i', 2, 0}, {395, 'i', 0, 0}, {396, 'i', 0, 0},
    {409, 'i', 1, 0}, {419, 'i', 2, 0}, {429, 'i', 3, 0}, {439, 'i', 0, 0},
    {449, 'i', 180000, 0}, {843, 'i', 90000, 0}, {897, 'i', 91000, 0},
    {1001, 'd', 0.98, 0}, {1002, 'd', 0.91, 0}, {1003, 'd', 0.33, 0}, {1004, 'd', 0.42, 0},
    {1005, 'd', 0.71, 0}, {1009, 'i', 1.5e9, 0}, {1010, 'i', 2.5e9, 0}, {1011, 'i', 9.0e10, 0},
    {1012, 'i', 9.1e10, 0}, {1040, 'i', 5.0e9, 0}, {1041, 'i', 5.1e9, 0}, {1042, 'i', 5.2e9, 0},
    {1043, 'i', 5.3e9, 0}, {1076, 'i', 4000, 0}, {1078, 'i', 5000, 0},
    {1091, 'i', 1e15, 0}, {1092, 'i', 2e15, 0}, {1201, 'i', 7e15, 0}, {1203, 'i', 8e15, 0},
    {1420, 'i', 2.5e9, 0}, {1421, 'i', 0, 0}, {1422, 'i', 0, 0}, {1423, 'i', 2.5e8, 0},
    {1424, 'i', 0, 0}, {1525, 'i', 1, 0}, {1526, 'i', 2, 0}, {1527, 'i', 3, 0}, {1528, 'i', 4, 0},
    {1532, 'i', 5.0e9, 0}, {1533, 'i', 5.1e9, 0},
};
enum { FIELDS = sizeof fields / sizeof *fields };

/* ---- the scenario ------------------------------------------------------------------------- */

typedef struct {
  int gpu, what; /* a field, or an XID */
  char text[64];
} setting_t;

static struct {
  int gpus;       /* how many there are */
  int nvlinks;    /* links of each GPU */
  int link_down;  /* number of a link that is down on each GPU; -1: none */
  int mig;        /* number of the GPU in MIG mode, with two instances; -1: none */
  int lost;       /* number of a GPU whose fields say that it is lost; -1: none */
  int failing;    /* number of a GPU that fails each call it is part of; -1: none */
  int profiling;  /* 0: the GPUs have no profiling fields */
  int dead;       /* 1: the engine does not answer */
  int restarts;   /* a change: the engine was started again and has forgotten its clients */
  char version[16];
  char unknown[128]; /* "id,id,...": fields that the engine does not know */
  int events, settings;
  setting_t event[MOST_EVENTS]; /* xids=gpu:code,gpu:code,...: events so far */
  setting_t setting[MOST_SETS];
} now;

static struct timespec file_time;
static ino_t file_inode;
static int has_defaults;

static void defaults(void) {
  memset(&now, 0, sizeof now);
  has_defaults = 1;
  now.gpus = 2;
  now.nvlinks = 2;
  now.profiling = 1;
  now.link_down = now.mig = now.lost = now.failing = -1;
  snprintf(now.version, sizeof now.version, "4.6.0");
}

static void set_xids(const char *next) {
  now.events = 0;
  while (now.events < MOST_EVENTS) {
    setting_t *event = &now.event[now.events];
    if (sscanf(next, "%d:%d", &event->gpu, &event->what) != 2) return;
    now.events++;
    if (!(next = strchr(next, ','))) return;
    next++;
  }
}

static void set(const char *key, const char *value) {
#define INT(name) \
  if (!strcmp(key, #name)) now.name = atoi(value)
#define TEXT(name) \
  if (!strcmp(key, #name)) snprintf(now.name, sizeof now.name, "%s", value)
  INT(gpus);
  INT(nvlinks);
  INT(link_down);
  INT(mig);
  INT(lost);
  INT(failing);
  INT(profiling);
  INT(dead);
  INT(restarts);
  TEXT(version);
  TEXT(unknown);
  if (!strcmp(key, "xids")) set_xids(value);
  setting_t *setting = &now.setting[now.settings];
  if (now.settings < MOST_SETS && sscanf(key, "%d:%d", &setting->gpu, &setting->what) == 2) {
    snprintf(setting->text, sizeof setting->text, "%s", value);
    now.settings++;
  }
}

static void refresh(void) {
  const char *path = getenv("SYNTHETIC_DCGM");
  struct stat seen;
  if (!has_defaults) defaults();
  if (!path || stat(path, &seen)) return;
  if (seen.st_ino == file_inode && seen.st_mtim.tv_sec == file_time.tv_sec &&
      seen.st_mtim.tv_nsec == file_time.tv_nsec)
    return;
  FILE *file = fopen(path, "r");
  if (!file) return;
  char line[1024];
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

static int knows(int field) {
  for (const char *next = now.unknown; next; next = strchr(next, ',')) {
    if (*next == ',') next++;
    if (atoi(next) == field) return 0;
  }
  for (int i = 0; i < FIELDS; i++)
    if (fields[i].id == field) return 1;
  return 0;
}

/* ---- entities ----------------------------------------------------------------------------- */

typedef struct {
  unsigned kind, id;
} entity_t;

enum { PLACES = MOST_GPUS + INSTANCES + MOST_GPUS * MOST_LINKS };

static unsigned link_id(int gpu, int link) { /* type, number, owner, as DCGM packs them */
  return (unsigned)(GPU | link << 8 | gpu << 24);
}

/* Returns the number of the GPU that an entity is or is a part of; -1: there is no such entity. */
static int gpu_of(entity_t entity) {
  int gpu = entity.kind == GPU_INSTANCE ? now.mig : (int)entity.id;
  if (entity.kind == GPU_INSTANCE && entity.id >= INSTANCES) return -1;
  if (entity.kind == LINK) {
    gpu = (int)(entity.id >> 24);
    if ((entity.id & 0xff) != GPU || (int)(entity.id >> 8 & 0xffff) >= now.nvlinks) return -1;
  }
  return gpu < now.gpus ? gpu : -1;
}

static int place_of(entity_t entity) {
  if (entity.kind == GPU) return (int)entity.id;
  if (entity.kind == GPU_INSTANCE) return MOST_GPUS + (int)entity.id;
  return MOST_GPUS + INSTANCES + gpu_of(entity) * MOST_LINKS + (int)(entity.id >> 8 & 0xffff);
}

static void uuid_of(int gpu, char *text, size_t size) {
  snprintf(text, size, "GPU-%08x-0000-0000-0000-000000000000", gpu);
}

/* ---- the engine --------------------------------------------------------------------------- */

enum { EMBEDDED = 0x7fffffff, FIRST_REMOTE = 1 };
enum watch { UNWATCHED, WATCHED, HAS_VALUE };

typedef struct {
  int used, count;
  char name[256];
  union {
    entity_t entities[PLACES];
    unsigned short fields[MOST_FIELDS];
  } of;
} group_t;

static struct {
  int initialized, restarts_seen;
  size_t connection; /* 0: none */
  group_t groups[MOST_GROUPS], field_groups[MOST_GROUPS];
  unsigned char watches[PLACES][FIELDS];
} engine;

static void forget(void) {
  memset(engine.groups, 0, sizeof engine.groups);
  memset(engine.field_groups, 0, sizeof engine.field_groups);
  memset(engine.watches, 0, sizeof engine.watches);
  engine.connection = 0;
  engine.restarts_seen = now.restarts;
}

static int check(size_t connection) {
  refresh();
  if (!engine.initialized) return UNINITIALIZED;
  if (now.dead || engine.restarts_seen != now.restarts) return CONNECTION_NOT_VALID;
  return connection && connection == engine.connection ? OK : CONNECTION_NOT_VALID;
}
#define CHECK(connection)             \
  do {                                \
    int code = check(connection);     \
    if (code != OK) return code;      \
  } while (0)

static int connect_as(size_t connection, size_t *to) {
  refresh();
  if (!engine.initialized) return UNINITIALIZED;
  if (now.dead) return CONNECTION_NOT_VALID;
  forget();
  *to = engine.connection = connection;
  return OK;
}

int dcgmInit(void) {
  engine.initialized = 1;
  return OK;
}

int dcgmShutdown(void) {
  forget();
  engine.initialized = 0;
  return OK;
}

int dcgmStartEmbedded(int mode, size_t *connection) {
  (void)mode;
  return connect_as(EMBEDDED, connection);
}

int dcgmStopEmbedded(size_t connection) {
  if (connection != EMBEDDED) return BAD_PARAMETER;
  forget();
  return OK;
}

/* Bindings up to DCGM 4.4 call this one, with "host:port" or a path. */
int dcgmConnect_v2(const char *where, const unsigned *parameters, size_t *connection) {
  if (!*where) return BAD_PARAMETER;
  if (*parameters != VERSIONED(16, 2)) return VERSION_MISMATCH;
  return connect_as(FIRST_REMOTE, connection);
}

/* And later ones this, with a scheme before it. */
int dcgmConnect_v3(const char *where, const unsigned *parameters, size_t *connection) {
  if (strncmp(where, "tcp://", 6) && strncmp(where, "unix://", 7)) return BAD_PARAMETER;
  if (*parameters != VERSIONED(12, 1)) return VERSION_MISMATCH;
  return connect_as(FIRST_REMOTE, connection);
}

/* Never fails, as the real one, whose clients let go of what is gone already. */
int dcgmDisconnect(size_t connection) {
  if (connection == engine.connection) forget();
  return OK;
}

const char *dcgmErrorString(int code) {
  switch (code) {
    case OK: return "Success";
    case UNKNOWN_FIELD: return "Unknown field";
    case GPU_IS_LOST: return "GPU is unreachable";
    case CONNECTION_NOT_VALID: return "The connection to the host engine is not valid any longer";
    default: return "synthetic error";
  }
}

typedef struct {
  unsigned version;
  char text[512];
} version_t;

int dcgmVersionInfo(version_t *version) {
  refresh();
  if (version->version != VERSIONED(sizeof *version, 2)) return VERSION_MISMATCH;
  snprintf(version->text, sizeof version->text, "version:%s;arch:x86_64;buildtype:Synthetic",
           now.version);
  return OK;
}

/* ---- discovery ---------------------------------------------------------------------------- */

int dcgmGetAllSupportedDevices(size_t connection, unsigned *ids, int *count) {
  CHECK(connection);
  *count = now.gpus;
  for (int gpu = 0; gpu < now.gpus; gpu++) ids[gpu] = (unsigned)gpu;
  return OK;
}

int dcgmGetEntityGroupEntities(size_t connection, int kind, unsigned *ids, int *count,
                               unsigned flags) {
  (void)flags;
  CHECK(connection);
  int found = 0;
  for (int gpu = 0; kind == GPU && gpu < now.gpus; gpu++) ids[found++] = (unsigned)gpu;
  for (unsigned i = 0; kind == GPU_INSTANCE && now.mig >= 0 && i < INSTANCES; i++) ids[found++] = i;
  for (int gpu = 0; kind == LINK && gpu < now.gpus; gpu++)
    for (int link = 0; link < now.nvlinks; link++) ids[found++] = link_id(gpu, link);
  *count = found;
  return OK;
}

typedef struct {
  unsigned version;
  char before[3120 - 4];
  struct {
    unsigned version;
    char brand[256], name[256], pci_bus_id[256], serial[256], uuid[256], vbios[256], inforom[256];
    unsigned pci_device, pci_subsystem;
    char driver_version[256];
    unsigned virtualization;
  } is;
  char after[5220 - 5184];
} attributes_t;
_Static_assert(sizeof(attributes_t) == 0x1464, "dcgmDeviceAttributes_v3");

int dcgmGetDeviceAttributes(size_t connection, int gpu, attributes_t *attributes) {
  CHECK(connection);
  if (attributes->version != VERSIONED(sizeof *attributes, 3)) return VERSION_MISMATCH;
  if (gpu < 0 || gpu >= now.gpus) return BAD_PARAMETER;
  if (gpu == now.failing) return GPU_IS_LOST;
  snprintf(attributes->is.name, sizeof attributes->is.name, "NVIDIA H100 80GB HBM3");
  snprintf(attributes->is.pci_bus_id, sizeof attributes->is.pci_bus_id, "00000000:%02X:00.0",
           0x1b + gpu);
  uuid_of(gpu, attributes->is.uuid, sizeof attributes->is.uuid);
  snprintf(attributes->is.driver_version, sizeof attributes->is.driver_version, "570.86.15");
  return OK;
}

typedef struct {
  unsigned version, count;
  struct {
    entity_t entity, parent;
    char gpu_uuid[128];
    unsigned gpu, instance, compute_instance, profile, slices;
  } rows[448];
} hierarchy_t;
_Static_assert(sizeof(hierarchy_t) == 0x11f08, "dcgmMigHierarchy_v2");

int dcgmGetGpuInstanceHierarchy(size_t connection, hierarchy_t *tree) {
  CHECK(connection);
  if (tree->version != VERSIONED(sizeof *tree, 2)) return VERSION_MISMATCH;
  tree->count = now.mig < 0 ? 0 : INSTANCES;
  for (unsigned i = 0; i < tree->count; i++) {
    tree->rows[i].entity = (entity_t){GPU_INSTANCE, i};
    tree->rows[i].parent = (entity_t){GPU, (unsigned)now.mig};
    uuid_of(now.mig, tree->rows[i].gpu_uuid, sizeof tree->rows[i].gpu_uuid);
    tree->rows[i].gpu = (unsigned)now.mig;
    tree->rows[i].instance = i + 1;
  }
  return OK;
}

/* Version, count, then 32 times a GPU and the states of 18 links; of 36 since DCGM 4.6. */
int dcgmGetNvLinkLinkStatus(size_t connection, unsigned *status) {
  enum { NOT_SUPPORTED, DISABLED, DOWN, UP };
  CHECK(connection);
  int links;
  switch (status[0]) {
    case VERSIONED(0x15bc, 3): case VERSIONED(0x39bc, 4): links = 18; break;
    case VERSIONED(0x42bc, 5): links = 36; break;
    default: return VERSION_MISMATCH;
  }
  status[1] = (unsigned)now.gpus;
  unsigned *next = status + 2;
  for (int gpu = 0; gpu < now.gpus; gpu++) {
    *next++ = (unsigned)gpu;
    for (int link = 0; link < links; link++)
      *next++ = link >= now.nvlinks ? NOT_SUPPORTED : link == now.link_down ? DOWN : UP;
  }
  return OK;
}

typedef struct {
  unsigned version, unused, gpu, count;
  struct {
    unsigned short major, minor;
    unsigned count;
    unsigned short fields[64];
  } groups[10];
} profiling_t;
_Static_assert(sizeof(profiling_t) == 0x560, "dcgmProfGetMetricGroups_v3");

int dcgmProfGetSupportedMetricGroups(size_t connection, profiling_t *profiling) {
  CHECK(connection);
  if (profiling->version != VERSIONED(sizeof *profiling, 3)) return VERSION_MISMATCH;
  if ((int)profiling->gpu >= now.gpus) return BAD_PARAMETER;
  if (!now.profiling) return PROFILING_NOT_SUPPORTED;
  profiling->count = 2; /* what the multiprocessors do, and what the links do */
  for (int i = 0; i < FIELDS; i++) {
    const int id = fields[i].id;
    if (id < 1001 || id > 1079) continue;
    unsigned *count = &profiling->groups[id > 1005].count;
    profiling->groups[id > 1005].fields[(*count)++] = (unsigned short)id;
  }
  return OK;
}

/* ---- groups, field groups and watches ----------------------------------------------------- */

static int make(group_t *all, const char *name, size_t *id) {
  for (int i = 0; i < MOST_GROUPS; i++)
    if (all[i].used && !strcmp(all[i].name, name)) return DUPLICATE_KEY;
  for (int i = 0; i < MOST_GROUPS; i++) {
    if (all[i].used) continue;
    memset(&all[i], 0, sizeof all[i]);
    all[i].used = 1;
    snprintf(all[i].name, sizeof all[i].name, "%s", name);
    *id = (size_t)i + 1;
    return OK;
  }
  return MAX_LIMIT;
}

static group_t *find(group_t *all, size_t id) {
  return id >= 1 && id <= MOST_GROUPS && all[id - 1].used ? &all[id - 1] : NULL;
}

int dcgmGroupCreate(size_t connection, int type, const char *name, size_t *id) {
  CHECK(connection);
  return type == 1 ? make(engine.groups, name, id) : BAD_PARAMETER; /* 1: an empty one */
}

int dcgmGroupDestroy(size_t connection, size_t id) {
  CHECK(connection);
  group_t *group = find(engine.groups, id);
  if (!group) return NOT_CONFIGURED;
  group->used = 0;
  return OK;
}

int dcgmGroupAddEntity(size_t connection, size_t id, unsigned kind, unsigned entity) {
  CHECK(connection);
  group_t *group = find(engine.groups, id);
  if (!group) return NOT_CONFIGURED;
  if (group->count == PLACES || gpu_of((entity_t){kind, entity}) < 0) return BAD_PARAMETER;
  group->of.entities[group->count++] = (entity_t){kind, entity};
  return OK;
}

int dcgmFieldGroupCreate(size_t connection, int count, const unsigned short *ids, const char *name,
                         size_t *id) {
  CHECK(connection);
  if (count < 1 || count > MOST_FIELDS) return BAD_PARAMETER;
  for (int i = 0; i < count; i++)
    if (!knows(ids[i])) return UNKNOWN_FIELD;
  const int code = make(engine.field_groups, name, id);
  if (code != OK) return code;
  group_t *group = find(engine.field_groups, *id);
  group->count = count;
  memcpy(group->of.fields, ids, (size_t)count * sizeof *ids);
  return OK;
}

int dcgmFieldGroupDestroy(size_t connection, size_t id) {
  CHECK(connection);
  group_t *group = find(engine.field_groups, id);
  if (!group) return NO_DATA;
  group->used = 0;
  return OK;
}

static unsigned char *watch_of(entity_t entity, int field) {
  for (int i = 0; i < FIELDS; i++)
    if (fields[i].id == field) return &engine.watches[place_of(entity)][i];
  return NULL;
}

int dcgmWatchFields(size_t connection, size_t group_id, size_t fields_id, long long period_us,
                    double keep_s, int keep) {
  CHECK(connection);
  const group_t *group = find(engine.groups, group_id);
  const group_t *ids = find(engine.field_groups, fields_id);
  if (!group || !ids || period_us <= 0 || keep_s <= 0 || keep < 0) return BAD_PARAMETER;
  for (int e = 0; e < group->count; e++)
    for (int f = 0; f < ids->count; f++) {
      unsigned char *watch = watch_of(group->of.entities[e], ids->of.fields[f]);
      if (*watch == UNWATCHED) *watch = WATCHED;
    }
  return OK;
}

int dcgmUpdateAllFields(size_t connection, int wait) {
  CHECK(connection);
  if (!wait) return OK; /* it will, some time */
  for (int e = 0; e < PLACES; e++)
    for (int f = 0; f < FIELDS; f++)
      if (engine.watches[e][f] == WATCHED) engine.watches[e][f] = HAS_VALUE;
  return OK;
}

/* ---- values ------------------------------------------------------------------------------- */

typedef union {
  double real;
  long long integer;
  char text[256];
  char blob[4096];
} content_t;

typedef struct {
  unsigned version;
  unsigned short field;
  short type;
  int status;
  long long at_us;
  content_t content;
} value_t;
_Static_assert(sizeof(value_t) == 0x1018, "dcgmFieldValue_v1");

typedef struct {
  unsigned version;
  entity_t entity;
  unsigned short field;
  short type;
  int status;
  unsigned unused;
  long long at_us;
  content_t content;
} entity_value_t;
_Static_assert(sizeof(entity_value_t) == 0x1020, "dcgmFieldValue_v2");

typedef int (*take_t)(unsigned kind, unsigned id, value_t *values, int count, void *user);

static void fill_blank(value_t *value, int more) {
  static const char *const texts[] = {"<<<NULL>>>", "<<<NOT_FOUND>>>", "<<<NOT_SUPPORTED>>>",
                                      "<<<NOT_PERM>>>"};
  if (value->type == 'd') value->content.real = FP64_BLANK + more;
  if (value->type == 'i') value->content.integer = INT64_BLANK + more;
  if (value->type == 's') snprintf(value->content.text, 256, "%s", texts[more]);
}

static void fill_number(value_t *value, double number) {
  if (value->type == 'd') value->content.real = number;
  if (value->type == 'i') value->content.integer = (long long)number;
}

static void fill_setting(value_t *value, const char *text) {
  static const char *const blanks[] = {"blank", "not_found", "not_supported", "not_permitted"};
  if (!strncmp(text, "status:", 7)) value->status = atoi(text + 7);
  for (int more = 0; more < 4; more++)
    if (!strcmp(text, blanks[more])) {
      fill_blank(value, more);
      return;
    }
  fill_number(value, atof(text));
  if (value->type == 's') snprintf(value->content.text, 256, "%s", text);
}

static void fill_own(value_t *value, entity_t entity, const field_t *field) {
  const int gpu = gpu_of(entity);
  char *text = value->content.text;
  fill_number(value, field->number);
  if (field->type == 's') snprintf(text, 256, "%s", field->text);
  if (field->id == UUID) uuid_of(gpu, text, 256);
  if (field->id == MINOR) value->content.integer = gpu;
  if (field->id == NAME)
    snprintf(text, 256, entity.kind == GPU_INSTANCE ? "MIG 1g.10gb" : "NVIDIA H100 80GB HBM3");
}

/* The last XID, of which there may be none yet: it has no value before the first. */
static void fill_xid(value_t *value, entity_t entity) {
  value->status = NO_DATA;
  value->at_us = 0;
  fill_blank(value, 0);
  for (int i = 0; entity.kind == GPU && i < now.events; i++) {
    if (now.event[i].gpu != (int)entity.id) continue;
    value->status = OK;
    value->at_us = i + 1;
    value->content.integer = now.event[i].what;
  }
}

static void read_value(entity_t entity, int id, int live, value_t *value) {
  memset(value, 0, offsetof(value_t, content) + sizeof value->content.text);
  value->version = VERSIONED(sizeof *value, 1);
  value->field = (unsigned short)id;
  value->at_us = now.events;
  const int gpu = gpu_of(entity);
  value->status = !knows(id) ? UNKNOWN_FIELD : gpu < 0 ? BAD_PARAMETER : OK;
  if (value->status != OK) return;
  const field_t *field = fields;
  while (field->id != id) field++;
  value->type = field->type;
  const int watch = live ? HAS_VALUE : *watch_of(entity, id);
  value->status = watch == UNWATCHED ? NOT_WATCHED : watch == WATCHED ? NO_DATA : OK;
  if (gpu == now.lost) value->status = GPU_IS_LOST;
  if (value->status != OK) {
    fill_blank(value, 0);
    return;
  }
  fill_own(value, entity, field);
  if (id == XID) fill_xid(value, entity);
  for (int i = 0; entity.kind == GPU && i < now.settings; i++)
    if (now.setting[i].gpu == gpu && now.setting[i].what == id)
      fill_setting(value, now.setting[i].text);
}

int dcgmEntitiesGetLatestValues(size_t connection, const entity_t *entities, unsigned count,
                                const unsigned short *ids, unsigned ids_count, unsigned flags,
                                entity_value_t *values) {
  CHECK(connection);
  if (ids_count > MOST_FIELDS) return BAD_PARAMETER;
  for (unsigned e = 0; e < count; e++)
    if (now.failing >= 0 && gpu_of(entities[e]) == now.failing) return GPU_IS_LOST;
  value_t read;
  for (unsigned e = 0; e < count; e++)
    for (unsigned f = 0; f < ids_count; f++) {
      read_value(entities[e], ids[f], flags & 1, &read);
      entity_value_t *value = values++;
      value->version = VERSIONED(sizeof *value, 2);
      value->entity = entities[e];
      value->field = read.field;
      value->type = read.type;
      value->status = read.status;
      value->at_us = read.at_us;
      memcpy(value->content.text, read.content.text, sizeof read.content.text);
    }
  return OK;
}

int dcgmGetLatestValues_v2(size_t connection, size_t group_id, size_t fields_id, take_t take,
                           void *user) {
  CHECK(connection);
  const group_t *group = find(engine.groups, group_id);
  const group_t *ids = find(engine.field_groups, fields_id);
  if (!group || !ids) return BAD_PARAMETER;
  value_t *values = calloc((size_t)ids->count, sizeof *values);
  if (!values) return MAX_LIMIT;
  for (int e = 0; e < group->count; e++) {
    const entity_t entity = group->of.entities[e];
    for (int f = 0; f < ids->count; f++) read_value(entity, ids->of.fields[f], 0, &values[f]);
    if (take(entity.kind, entity.id, values, ids->count, user)) break;
  }
  free(values);
  return OK;
}

/* XIDs alone have a history here, so a group of others is refused: no test shall build on it. */
int dcgmGetValuesSince_v2(size_t connection, size_t group_id, size_t fields_id, long long since_us,
                          long long *next_us, take_t take, void *user) {
  CHECK(connection);
  const group_t *group = find(engine.groups, group_id);
  const group_t *ids = find(engine.field_groups, fields_id);
  if (!group || !ids || ids->count != 1 || ids->of.fields[0] != XID) return BAD_PARAMETER;
  value_t value;
  for (int e = 0; e < group->count; e++) {
    const entity_t entity = group->of.entities[e];
    for (int i = 0; entity.kind == GPU && i < now.events; i++) {
      if (now.event[i].gpu != (int)entity.id || i + 1 < since_us) continue;
      read_value(entity, XID, 0, &value);
      if (value.status != OK) continue;
      value.at_us = i + 1;
      value.content.integer = now.event[i].what;
      if (take(entity.kind, entity.id, &value, 1, user)) return OK;
    }
  }
  *next_us = now.events + 1;
  return OK;
}
