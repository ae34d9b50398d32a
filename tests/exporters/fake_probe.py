"""Writes records as the probe does, with numbers of a test's choosing."""

import math
from pathlib import Path
from typing import Any

from vramscope.exporters.engine.probe.adapters import STEP_FIELDS as LORA_FIELDS
from vramscope.exporters.engine.probe.adapters import lora_scan_fields
from vramscope.exporters.engine.probe.budget import Budget
from vramscope.exporters.engine.probe.growth import GROWTH_FIELDS
from vramscope.exporters.engine.probe.lifecycle import Lifecycle
from vramscope.exporters.engine.probe.load import LoadMeter
from vramscope.exporters.engine.probe.offload import SCAN_FIELDS as OFFLOAD_FIELDS
from vramscope.exporters.engine.probe.pools import (
    POOL_FIELDS,
    POOL_STEP_FIELDS,
    length_fields,
    pool_fields,
)
from vramscope.exporters.engine.probe.preemption import PreemptionMeter
from vramscope.exporters.engine.probe.requests import PrefillMeter
from vramscope.exporters.engine.probe.reservations import Reservations
from vramscope.exporters.engine.probe.scheduler import REQUEST_FIELDS, SCAN_FIELDS, STEP_FIELDS
from vramscope.exporters.engine.probe.slot_waits import SlotWaits
from vramscope.exporters.engine.probe.static_waste import StaticWaste
from vramscope.exporters.engine.probe.waiting import WAITING_REASONS
from vramscope.exporters.engine.probe.worker import SCAN_FIELDS as WORKER_SCAN_FIELDS
from vramscope.exporters.engine.probe.worker import STEP_FIELDS as WORKER_STEP_FIELDS
from vramscope.exporters.engine.writer import RecordWriter

HEADER: dict[str, Any] = {
    "role": "engine",
    "engine": "a",
    "model": "tiny",
    "dp_rank": 0,
    "vllm_version": "0.32.0",
    "gpu_slots": 1,
    "cpu_slots": 2,
    "pools": [{"blocks": 100}],
    "groups": [{"group": 0, "pool": 0, "kind": "FullAttentionSpec", "block_size": 16}],
}
FIELDS = (*STEP_FIELDS, *pool_fields(1, POOL_STEP_FIELDS), *REQUEST_FIELDS)
SCANNED = (
    *SCAN_FIELDS,
    *Reservations.scan_fields,
    *pool_fields(1, POOL_FIELDS),
    "group0_entries",
    *length_fields("length_requests"),
    *StaticWaste.scan_fields,
    *pool_fields(1, GROWTH_FIELDS),
    *Lifecycle.scan_fields,
    *PreemptionMeter().scan_fields,
    *LoadMeter(PrefillMeter()).scan_fields,
    *(f"waiting_{reason}" for reason in WAITING_REASONS),
    "waiting_oldest_s",
    *SlotWaits.scan_fields,
)
WORKER_FIELDS = (*WORKER_STEP_FIELDS, *LORA_FIELDS)
WORKER_SCANNED = (*WORKER_SCAN_FIELDS, *lora_scan_fields(2), *Budget.scan_fields)
STEP: dict[str, float] = {
    "time_s": 1000.0,
    "busy": 1,
    "steps": 250,
    "step_p99_s": 0.02,
    "running": 3,
    "waiting": 1,
    "first_schedules": 60,
    "finished": 55,
    "aborted": 2,
    "cached_tokens": 640,
    "prefill_tokens": 4000,
    "recomputed_tokens": 500,
    "generated_tokens": 9000,
    "preempted_tokens": 600,
    "preemptions_kv_exhausted": 3,
    "preemptions_cache_reset": 0,
    "preemptions_other": 0,
    "batch_requests": 3,
    "batch_tokens": 35,
    "scan_time_s": 999.9,
    "pool0_blocks": 100,
    "pool0_live": 10.5,
    "pool0_slack": 1.5,
    "pool0_lookahead": 0.25,
    "pool0_held": 8,
    "pool0_evictable": 60,
    "pool0_clean": 20,
    "pool0_reserved": 5,
    "pool0_free_now": 80,
    "pool0_evictable_now": 60,
    "pool0_evictions": 40,
    "pool0_resurrections": 12,
    "pool0_shared": 1,
    "pool0_extra_references": 1,
    "pool0_slack_le_128": 1.5,
    "pool0_entries_le_128": 13,
    "pool0_census_begun_s": 999.9,
    "pool0_drift": 0,
    "pool0_duplicates": 7,
    "pool0_free_seen": 80,
    "pool0_free_run": 20,
    "pool0_oldest_evictable_s": 90.0,
    "pool0_evictable_age_le_30": 50,
    "pool0_evictable_age_le_120": 10,
    "pool0_evicted_hit_age_s_le_5": 4,
    "pool0_evicted_hit_age_s_count": 4,
    "pool0_evicted_hit_age_s_sum": 12.0,
    "pool0_evicted_never_hit_age_s_le_120": 34,
    "pool0_evicted_never_hit_age_s_count": 35,
    "pool0_evicted_never_hit_age_s_sum": 7500.0,
    "group0_entries": 21,
    "length_requests_le_128": 3,
    "reservation_watermark": 1,
    "reservation_prefill": 4,
    "reservation_refused_waiting": 9,
    "reservation_refused_running": 3,
    "reservation_refused_wants": 78,
    "static_tokens": 184,
    "static_max_model_len": 1536,
    "static_power_of_two": 256,
    "static_held_token_seconds": 3000.0,
    "static_oracle_token_seconds": 4000.0,
    "pool0_growth_decode": 300,
    "pool0_growth_prefill": 500,
    "pool0_growth_freed": 780,
    "pool0_growth_decode_per_s": 4.5,
    "pool0_growth_prefill_per_s": 9.0,
    "pool0_growth_freed_per_s": 9.0,
    "pool0_growth_per_s": 4.5,
    "pool0_growth_variance": 90.0,
    "pool0_growth_weight": 0.9,
    "preemption_victims": 2,
    "preemption_repeats": 1,
    "preemption_rehit_tokens": 96,
    "preemption_abandoned_tokens": 4,
    "preemption_resumed": 2,
    "preemption_left": 0,
    "preemption_waiting": 1,
    "preemption_most": 2,
    "preemption_resumption_s_le_0.5": 1,
    "preemption_resumption_s_le_2.5": 1,
    "preemption_resumption_s_count": 2,
    "preemption_resumption_s_sum": 1.75,
    "preemption_victim_age_s_le_2.5": 2,
    "preemption_victim_age_s_count": 3,
    "preemption_victim_age_s_sum": 1004.0,
    "load_requests": 700,
    "load_decode_tokens": 8900,
    "load_step_s_le_0.025": 249,
    "load_step_s_count": 250,
    "load_step_s_sum": 5.5,
    "load_queue_s_le_0.005": 58,
    "load_queue_s_le_1.0": 2,
    "load_queue_s_count": 60,
    "load_queue_s_sum": 1.25,
    "waiting_kv_blocks": 1,
    "waiting_oldest_s": 0.75,
    "lora_slot_waits": 3,
    "lora_slot_wait_s": 4.5,
    "lora_slot_waiting": 1,
}
CAPABILITIES = {
    "steps": True,
    "requests": True,
    "preemption": True,
    "prefill": True,
    "blocks": True,
    "growth": True,
    "waiting_reasons": True,
    "refusals": True,
    "static_waste": True,
}
WORKER: dict[str, float] = {
    "time_s": 999.0,
    "lora_requests_gpu": 6,
    "lora_requests_cpu": 1,
    "lora_requests_disk": 1,
    "lora_loads_cpu": 1,
    "lora_loads_disk": 2,
    "lora_load_s_cpu": 0.002,
    "lora_load_s_disk": 0.5,
    "lora_load_cpu_le_0.0025": 1,
    "lora_load_disk_le_0.25": 1,
    "lora_load_disk_le_0.5": 1,
    "lora_evictions_gpu": 2,
    "lora_evictions_cpu": 1,
    "lora_resident_gpu": 1,
    "lora_resident_cpu": 2,
    "lora_zombies_cpu": 1,
    "lora_adapter0_turn": 1,
    "lora_adapter0_requests_gpu": 5,
    "lora_adapter0_requests_disk": 1,
    "lora_adapter0_loads_disk": 1,
    "lora_adapter0_load_s_disk": 0.2,
    "lora_adapter0_evictions_gpu": 1,
    "lora_adapterother_requests_gpu": 1,
    "lora_adapterother_requests_cpu": 1,
    "lora_adapterother_loads_cpu": 1,
    "lora_adapterother_loads_disk": 1,
    "lora_adapterother_load_s_cpu": 0.002,
    "lora_adapterother_load_s_disk": 0.3,
    "lora_adapterother_evictions_gpu": 1,
    "lora_adapterother_evictions_cpu": 1,
    "vram_weights_bytes": 1_500_000,
    "vram_kv_pool_bytes": 3_000_000,
    "vram_lora_slots_bytes": 250_000,
    "vram_encoder_cache_bytes": math.nan,
    "vram_activation_peak_bytes": math.nan,
    "vram_graphs_bytes": math.nan,
    "vram_allocator_bytes": math.nan,
}
WORKER_STATE: dict[str, Any] = {
    "capabilities": {"lora": True, "vram": True},
    "error": None,
    "adapters": [["ad0", 1], None],
    "resident": {"ad0": "gpu", "ad1": "cpu"},
    "bytes": {"ad0": 65536, "ad1": 65536},
    "ranks": {"ad0": 8, "ad1": 8},
}


def write_engine(
    folder: Path,
    header: dict[str, Any] | None = None,
    capabilities: dict[str, bool] | None = None,
    error: str | None = None,
    **step: float,
) -> RecordWriter:
    """Write an EngineCore's record; the caller closes it."""
    head = {**HEADER, **(header or {})}
    name = f"{head['engine']}.dp{head['dp_rank']}.engine0"
    scanned = [*SCANNED, *(field for field in OFFLOAD_FIELDS if field in step)]
    writer = RecordWriter(folder, name, head, FIELDS, scanned)
    writer.write_state({"capabilities": capabilities or CAPABILITIES, "error": error})
    values = {**STEP, **step}
    writer.write_scan([values.get(field, 0) for field in scanned])
    writer.write_step([values[field] for field in FIELDS])
    return writer


def write_worker(
    folder: Path, rank: int = 0, header: dict[str, Any] | None = None, **values: float
) -> RecordWriter:
    """Write a worker's record for engine a; the caller closes it."""
    header = {**HEADER, "role": "worker", "rank": rank, **(header or {})}
    writer = RecordWriter(folder, f"a.dp0.worker{rank}", header, WORKER_FIELDS, WORKER_SCANNED)
    writer.write_state(WORKER_STATE)
    numbers = {**WORKER, **values}
    writer.write_scan([numbers.get(field, 0) for field in WORKER_SCANNED])
    writer.write_step([numbers.get(field, 0) for field in WORKER_FIELDS])
    return writer
