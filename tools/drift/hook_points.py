"""Every name of vLLM's that the probe hooks or reads: the one table, a line a name.

A name that a release lacks switches off the capability that needs it and nothing else. A test
holds this table and the probe's own code together; ``make drift`` looks the names up in the
sources of each release.
"""

from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["CAPABILITIES", "HOOK_POINTS", "Capability", "HookPoint", "Place"]


class Place(NamedTuple):
    """Where a class is.

    Attributes:
        owner: its name; empty for the functions of the module itself.
        files: its module below ``vllm``, and where other releases have it.
    """

    owner: str
    files: tuple[str, ...]


class HookPoint(NamedTuple):
    """One name.

    Attributes:
        capability: of the probe, that it is for.
        place: the class that has it.
        name: an attribute; ``touch(blocks)``: a method with at least these first parameters;
            ``one | other``: either will do.
        hooked: the probe wraps it; else it reads or calls it.
        needed: without it the capability is off; else the probe does without.
    """

    capability: str
    place: Place
    name: str
    hooked: bool
    needed: bool

    @property
    def key(self) -> str:
        """What names it in results."""
        return f"{self.place.owner}.{self.name}" if self.place.owner else self.name


class Capability(NamedTuple):
    """What the probe can do, or not, on a release.

    Attributes:
        gives: what the user sees of it.
        built_on: capabilities it can't do without.
    """

    gives: str
    built_on: tuple[str, ...] = ()


def hooks(capability: str, place: Place, *names: str, needed: bool = True) -> Iterator[HookPoint]:
    """Yield the points of methods that the probe wraps."""
    return (HookPoint(capability, place, name, True, needed) for name in names)


def reads(capability: str, place: Place, *names: str, needed: bool = True) -> Iterator[HookPoint]:
    """Yield the points of what the probe reads or calls."""
    return (HookPoint(capability, place, name, False, needed) for name in names)


CAPABILITIES = {
    "attach": Capability("the probe gets into the EngineCore and finds the block pools"),
    "steps": Capability("steps, batch and queue sizes, liveness", ("attach",)),
    "requests": Capability("first schedules, cached and generated tokens, ends", ("attach",)),
    "preemption": Capability("preemptions by reason, tokens lost", ("attach",)),
    "prefill": Capability("prefill and recomputed tokens", ("steps", "requests", "preemption")),
    "blocks": Capability("KV blocks by state, evictions, resurrections", ("attach",)),
    "refusals": Capability("allocations refused to waiting requests", ("attach",)),
    "static_waste": Capability("what contiguous allocators would waste", ("blocks",)),
    "growth": Capability(
        "blocks taken and freed by what takes them, forecast", ("blocks", "prefill")
    ),
    "page_table": Capability("`vramscope blocks`: the page table on request", ("steps", "blocks")),
    "waiting_reasons": Capability("what keeps each waiting request", ("steps", "requests")),
    "worker": Capability("a record of each worker: its rank, its process, its GPU"),
    "lora": Capability("adapters by tier, loads, evictions, waits, residency", ("worker",)),
    "vram": Capability("device memory by what it is for", ("worker",)),
    "offload": Capability("tokens looked up and found outside the GPU, with a KV connector"),
    "offload_transfers": Capability("bytes and seconds moved by vLLM's own offloading"),
    "offload_tier": Capability("blocks, evictions and refusals of the CPU tier", ("offload",)),
}
"""By name, in the order of the page."""

SCHEDULER_CONFIG = Place("SchedulerConfig", ("config/scheduler.py",))
VLLM_CONFIG = Place("VllmConfig", ("config/vllm.py",))
MODEL_CONFIG = Place("ModelConfig", ("config/model.py",))
PARALLEL_CONFIG = Place("ParallelConfig", ("config/parallel.py",))
LORA_CONFIG = Place("LoRAConfig", ("config/lora.py",))
KV_CACHE_CONFIG = Place("KVCacheConfig", ("v1/kv_cache_interface.py",))
KV_CACHE_TENSOR = Place("KVCacheTensor", ("v1/kv_cache_interface.py",))
SCHEDULER = Place("Scheduler", ("v1/core/sched/scheduler.py",))
SCHEDULER_OUTPUT = Place("SchedulerOutput", ("v1/core/sched/output.py",))
NEW_REQUEST = Place("NewRequestData", ("v1/core/sched/output.py",))
ENGINE_CORE_REQUEST = Place("EngineCoreRequest", ("v1/engine/__init__.py",))
REQUEST = Place("Request", ("v1/request.py",))
REQUEST_STATUS = Place("RequestStatus", ("v1/request.py",))
MANAGER = Place("KVCacheManager", ("v1/core/kv_cache_manager.py",))
COORDINATOR = Place("KVCacheCoordinator", ("v1/core/kv_cache_coordinator.py",))
TYPE_MANAGER = Place("SingleTypeKVCacheManager", ("v1/core/single_type_kv_cache_manager.py",))
POOL = Place("BlockPool", ("v1/core/block_pool.py",))
HASHES = Place("BlockHashToBlockMap", ("v1/core/block_pool.py",))
FREE_QUEUE = Place("FreeKVCacheBlockQueue", ("v1/core/kv_cache_utils.py",))
BLOCK = Place("KVCacheBlock", ("v1/core/kv_cache_utils.py",))
WORKER = Place("WorkerWrapperBase", ("v1/worker/worker_base.py",))
WORKER_BASE = Place("WorkerBase", ("v1/worker/worker_base.py",))
GPU_WORKER = Place("Worker", ("v1/worker/gpu_worker.py",))
ENCODER_CACHE = Place("EncoderCache", ("v1/worker/gpu/mm/encoder_cache.py",))
RUNNER = Place("GPUModelRunner", ("v1/worker/gpu_model_runner.py",))
LORA_WORKER = Place("LRUCacheWorkerLoRAManager", ("lora/worker_manager.py",))
LORA_MODELS = Place("LRUCacheLoRAModelManager", ("lora/model_manager.py", "lora/models.py"))
LORA_REQUEST = Place("LoRARequest", ("lora/request.py",))
LRU_CACHE = Place("LRUCache", ("utils/cache.py",))
CONNECTOR = Place("KVConnectorBase_V1", ("distributed/kv_transfer/kv_connector/v1/base.py",))
CONNECTOR_STATS = Place("KVConnectorStats", ("distributed/kv_transfer/kv_connector/v1/metrics.py",))
MODEL_OUTPUT = Place("ModelRunnerOutput", ("v1/outputs.py",))
CONNECTOR_OUTPUT = Place("KVConnectorOutput", ("v1/outputs.py",))
OFFLOADING = Place(
    "OffloadingConnector",
    ("distributed/kv_transfer/kv_connector/v1/offloading_connector.py",),
)
OFFLOADING_SCHEDULER = Place(
    "OffloadingConnectorScheduler",
    (
        "distributed/kv_transfer/kv_connector/v1/offloading/scheduler.py",
        "distributed/kv_transfer/kv_connector/v1/offloading_connector.py",
    ),
)
KV_TRANSFER_CONFIG = Place("KVTransferConfig", ("config/kv_transfer.py",))
MULTI_CONNECTOR = Place(
    "MultiConnector", ("distributed/kv_transfer/kv_connector/v1/multi_connector.py",)
)
TIERS = Place("TieringOffloadingManager", ("v1/kv_offload/tiering/manager.py",))
CPU_TIER = Place("CPUOffloadingManager", ("v1/kv_offload/cpu/manager.py",))

HOOK_POINTS = (
    *hooks("attach", SCHEDULER_CONFIG, "get_scheduler_cls()", needed=False),
    *hooks("attach", SCHEDULER, "__init__(vllm_config)", "shutdown()"),
    *reads("attach", SCHEDULER, "vllm_config", "kv_cache_config", "kv_cache_manager"),
    *reads("attach", MANAGER, "coordinator"),
    *reads("attach", COORDINATOR, "single_type_managers"),
    *reads("attach", TYPE_MANAGER, "block_pool", "block_size", "kv_cache_group_id"),
    *reads("attach", TYPE_MANAGER, "kv_cache_spec"),
    *reads("attach", KV_CACHE_CONFIG, "kv_cache_tensors", needed=False),
    *reads("attach", KV_CACHE_TENSOR, "size", needed=False),
    *reads("attach", VLLM_CONFIG, "instance_id", "model_config", "parallel_config", "lora_config"),
    *reads("attach", MODEL_CONFIG, "model", "max_model_len", "served_model_name"),
    *reads("attach", PARALLEL_CONFIG, "rank", "data_parallel_rank", "tensor_parallel_size"),
    *reads("attach", PARALLEL_CONFIG, "pipeline_parallel_size"),
    *reads("attach", PARALLEL_CONFIG, "data_parallel_index", needed=False),
    *reads("attach", LORA_CONFIG, "max_loras", "max_cpu_loras"),
    *hooks("steps", SCHEDULER, "schedule()", "update_from_output(scheduler_output)"),
    *reads("steps", SCHEDULER, "get_request_counts()", "get_num_unfinished_requests()"),
    *reads("steps", SCHEDULER_OUTPUT, "num_scheduled_tokens", "scheduled_new_reqs"),
    *hooks("steps", SCHEDULER, "set_pause_state(pause_state)", needed=False),
    *reads("steps", SCHEDULER, "pause_state", needed=False),
    *hooks("requests", SCHEDULER, "add_request(request)", "_free_request(request)"),
    *reads("requests", REQUEST, "request_id", "lora_request", "status", "max_tokens"),
    *reads("requests", REQUEST, "num_prompt_tokens", "num_output_tokens", "num_computed_tokens"),
    *reads("requests", REQUEST_STATUS, "FINISHED_ABORTED"),
    *reads("requests", NEW_REQUEST, "req_id"),
    *reads("requests", ENGINE_CORE_REQUEST, "external_req_id", needed=False),
    *hooks("preemption", SCHEDULER, "_preempt_request(request)", "reset_prefix_cache()"),
    *hooks("blocks", POOL, "free_blocks(ordered_blocks)", "touch(blocks)"),
    *hooks("blocks", POOL, "_maybe_evict_cached_block(block)", "reset_prefix_cache()"),
    *hooks("blocks", POOL, "unpin_blocks(blocks)", needed=False),
    *hooks("blocks", POOL, "move_block_hashes(src_block, dst_block)", needed=False),
    *reads("blocks", POOL, "num_gpu_blocks", "free_block_queue", "blocks"),
    *reads("blocks", FREE_QUEUE, "num_free_blocks"),
    *reads("blocks", BLOCK, "block_id", "ref_cnt", "block_hash", "is_null"),
    *reads("blocks", BLOCK, "_block_hash"),
    *reads("blocks", BLOCK, "pool", needed=False),
    *reads("blocks", POOL, "cached_block_hash_to_block", needed=False),
    *reads("blocks", HASHES, "_cache", needed=False),
    *hooks("blocks", MANAGER, "take_kv_cache_block_copies()", needed=False),
    *reads("blocks", MANAGER, "block_pool"),
    *reads("blocks", TYPE_MANAGER, "req_to_blocks"),
    *reads("blocks", TYPE_MANAGER, "get_num_skipped_tokens(num_computed_tokens)", needed=False),
    *reads("blocks", SCHEDULER, "running"),
    *reads("blocks", SCHEDULER, "deferred_frees", "num_lookahead_tokens", needed=False),
    *reads("blocks", SCHEDULER, "_inflight_prefill_reserved_blocks()", needed=False),
    *reads("blocks", MANAGER, "watermark_blocks", needed=False),
    *reads("blocks", REQUEST, "num_in_flight_tokens | num_output_placeholders", needed=False),
    *reads("blocks", REQUEST, "num_stale_output_tokens", needed=False),
    *hooks("refusals", MANAGER, "get_computed_blocks(request)"),
    *hooks("refusals", MANAGER, "get_computed_blocks_for_connector(request)", needed=False),
    *reads("refusals", MANAGER, "allocate_slots(request)"),
    *reads("refusals", SCHEDULER, "_request_remaining_blocks(request)", needed=False),
    *reads("static_waste", SCHEDULER, "max_model_len", "requests"),
    *reads("static_waste", REQUEST, "num_tokens"),
    *hooks("growth", POOL, "free_blocks(ordered_blocks)"),
    *hooks("growth", POOL, "unpin_blocks(blocks)", needed=False),
    *reads("steps", SCHEDULER_OUTPUT, "total_num_scheduled_tokens"),
    *reads("page_table", SCHEDULER, "requests"),
    *reads("page_table", POOL, "null_block"),
    *reads("page_table", LORA_REQUEST, "lora_name"),
    *reads("waiting_reasons", SCHEDULER, "max_num_scheduled_tokens", "waiting"),
    *reads("waiting_reasons", SCHEDULER, "max_num_active_reqs | max_num_running_reqs"),
    *reads("waiting_reasons", SCHEDULER, "deferred_waiting | skipped_waiting", needed=False),
    *reads("waiting_reasons", SCHEDULER, "_pause_state", needed=False),
    *hooks("worker", WORKER, "init_device()"),
    *reads("worker", WORKER, "worker"),
    *hooks("worker", WORKER_BASE, "load_model()", "execute_model(scheduler_output)", "shutdown()"),
    *reads("worker", WORKER_BASE, "vllm_config", "rank", "local_rank"),
    *reads("worker", WORKER_BASE, "model_runner | model"),
    *reads("worker", PARALLEL_CONFIG, "prefill_context_parallel_size", needed=False),
    *hooks("offload", CONNECTOR, "get_num_new_matched_tokens(request, num_computed_tokens)"),
    *hooks("offload", CONNECTOR, "update_state_after_alloc(request, blocks)"),
    *hooks("offload", CONNECTOR, "get_external_cache_hit_sources(request)", needed=False),
    *reads("offload", SCHEDULER, "connector"),
    *reads("offload", REQUEST, "num_tokens", "num_preemptions"),
    *reads("offload", VLLM_CONFIG, "kv_transfer_config", needed=False),
    *reads("offload", KV_TRANSFER_CONFIG, "kv_connector", needed=False),
    *hooks("offload_transfers", CONNECTOR, "get_kv_connector_stats()"),
    *reads("offload_transfers", CONNECTOR_STATS, "data"),
    *reads("offload_transfers", MODEL_OUTPUT, "kv_connector_output"),
    *reads("offload_transfers", CONNECTOR_OUTPUT, "kv_connector_stats"),
    *hooks("offload_tier", CPU_TIER, "prepare_store()", "complete_load()", "complete_store()"),
    *reads("offload_tier", CPU_TIER, "_free_list", "_num_chunks | _num_blocks"),
    *reads("offload_tier", CPU_TIER, "_num_allocated_chunks | _num_allocated_blocks"),
    *reads("offload_tier", CPU_TIER, "_num_evictable_cache_chunks | _num_evictable_cache_blocks"),
    *reads("offload_tier", OFFLOADING, "connector_scheduler"),
    *reads("offload_tier", MULTI_CONNECTOR, "_connectors", needed=False),
    *reads("offload_tier", TIERS, "primary_tier", needed=False),
    *reads("offload_tier", OFFLOADING_SCHEDULER, "manager"),
    *hooks("lora", LORA_WORKER, "add_adapter(lora_request)", "remove_adapter(adapter_id)"),
    *hooks("lora", LORA_WORKER, "remove_all_adapters()", needed=False),
    *reads("lora", RUNNER, "lora_manager", needed=False),
    *reads("lora", SCHEDULER, "lora_config"),
    *reads("lora", LORA_WORKER, "_adapter_manager"),
    *reads("lora", LORA_MODELS, "_active_adapters", "_registered_adapters"),
    *reads("lora", LRU_CACHE, "cache"),
    *reads("lora", NEW_REQUEST, "lora_request"),
    *reads("lora", SCHEDULER_OUTPUT, "finished_req_ids"),
    *reads("lora", LORA_REQUEST, "lora_int_id", "lora_name"),
    *reads("lora", LORA_REQUEST, "load_inplace", needed=False),
    *hooks("vram", GPU_WORKER, "determine_available_memory()", "compile_or_warm_up_model()"),
    *hooks("vram", GPU_WORKER, "initialize_from_config(kv_cache_config)"),
    *hooks("vram", GPU_WORKER, "sleep()", "wake_up(tags)", needed=False),
    *hooks("vram", RUNNER, "capture_model()", needed=False),
    *reads("vram", GPU_WORKER, "get_model()", "device"),
    *reads("vram", GPU_WORKER, "peak_activation_memory", needed=False),
    *reads("vram", RUNNER, "kv_caches"),
    *reads("vram", RUNNER, "encoder_cache", "supports_mm_inputs", needed=False),
    *reads("vram", RUNNER, "get_draft_model()", needed=False),
    *reads("vram", GPU_WORKER, "cudagraph_memory_estimate", needed=False),
    *reads("vram", ENCODER_CACHE, "encoder_outputs", needed=False),
)
