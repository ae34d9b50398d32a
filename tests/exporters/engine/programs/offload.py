"""Drives a real Scheduler with a real OffloadingConnector's scheduler half, without a worker.

A program and not a test, since vLLM fills its process: ``offload.py FOLDER``. The transfers are
synthetic: the worker's half needs a GPU, so what it would report (which jobs are done, bytes,
seconds) is made up here, and only that. Prints one JSON object: what the probe recorded, and what
vLLM's own statistics and objects say, counted here apart from the probe.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

BLOCK = 16
GPU_BLOCKS = 33  # 32 and the null block
TIER_BLOCKS = 8
SHAPE = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "vocab_size": 32000,
    "max_position_embeddings": 512,
    "torch_dtype": "float16",
}
PAGE_BYTES = 2 * BLOCK * 2 * 32 * 2  # K and V, slots, heads, head's size, bytes of a number
STORE_BYTES, STORE_S = 1000, 0.25  # synthetic, of each finished store
LOAD_BYTES, LOAD_S = 300, 0.5  # synthetic, of each finished load


def make_scheduler(folder: Path) -> Any:
    import torch
    from vllm.config import (
        CacheConfig,
        DeviceConfig,
        KVTransferConfig,
        ModelConfig,
        ParallelConfig,
        SchedulerConfig,
        VllmConfig,
    )
    from vllm.v1.core.kv_cache_utils import init_none_hash
    from vllm.v1.kv_cache_interface import (
        FullAttentionSpec,
        KVCacheConfig,
        KVCacheGroupSpec,
    )
    from vllm.v1.structured_output import StructuredOutputManager

    (folder / "config.json").write_text(json.dumps(SHAPE))
    config = VllmConfig(
        model_config=ModelConfig(
            model=str(folder), skip_tokenizer_init=True, dtype="float16", max_model_len=256
        ),
        scheduler_config=SchedulerConfig(
            max_num_seqs=4,
            max_num_batched_tokens=512,
            max_model_len=256,
            is_encoder_decoder=False,
            async_scheduling=False,
        ),
        cache_config=CacheConfig(block_size=BLOCK, enable_prefix_caching=True),
        parallel_config=ParallelConfig(),
        device_config=DeviceConfig("cpu"),
        kv_transfer_config=KVTransferConfig(
            kv_connector="OffloadingConnector",
            kv_role="kv_both",
            kv_connector_extra_config={"cpu_bytes_to_use": TIER_BLOCKS * PAGE_BYTES},
        ),
    )
    config.cache_config.num_gpu_blocks = GPU_BLOCKS
    spec = FullAttentionSpec(block_size=BLOCK, num_kv_heads=2, head_size=32, dtype=torch.float16)
    groups = [KVCacheGroupSpec(["layer"], spec)]
    from vllm.utils.hashing import sha256

    init_none_hash(sha256)
    return config.scheduler_config.get_scheduler_cls()(
        vllm_config=config,
        kv_cache_config=KVCacheConfig(
            num_blocks=GPU_BLOCKS, kv_cache_tensors=[], kv_cache_groups=groups
        ),
        structured_output_manager=StructuredOutputManager(config),
        block_size=BLOCK,
        hash_block_size=BLOCK,
        log_stats=True,
    )


class Engine:
    """Steps the scheduler; a step's jobs are reported done with the next step's output."""

    def __init__(self, scheduler: Any) -> None:
        self.scheduler = scheduler
        self.hold = False
        """Report nothing as done: the transfers are still going on."""
        self.queries = self.hits = 0
        self._jobs: list[tuple[int, bool, str]] = []

    def send(self, name: str, tokens: list[int]) -> None:
        from vllm.sampling_params import SamplingParams
        from vllm.utils.hashing import sha256
        from vllm.v1.core.kv_cache_utils import get_request_block_hasher
        from vllm.v1.request import Request

        self.scheduler.add_request(
            Request(
                request_id=name,
                prompt_token_ids=tokens,
                sampling_params=SamplingParams(max_tokens=2, ignore_eos=True),
                pooling_params=None,
                block_hasher=get_request_block_hasher(BLOCK, sha256),
            )
        )

    def finish(self) -> None:
        """Step until nothing is left to do, transfers included (but those on hold)."""
        for _ in range(100):
            self.step()
            left = self.scheduler.requests or (self._jobs and not self.hold)
            if not left and not self.scheduler.finished_req_ids:
                return
        raise AssertionError(f"never done: {list(self.scheduler.requests)}, {self._jobs}")

    def step(self) -> None:
        from vllm.distributed.kv_transfer.kv_connector.v1.offloading.common import (
            OffloadingWorkerMetadata,
        )
        from vllm.v1.outputs import KVConnectorOutput, ModelRunnerOutput

        output = self.scheduler.schedule()
        meta = OffloadingWorkerMetadata()
        received = set()
        done, self._jobs = ([], self._jobs) if self.hold else (self._jobs, [])
        for job, is_store, request in done:
            meta.mark_completed(job)
            if is_store:
                meta.transfer_stats.store.record(STORE_BYTES, STORE_S)
            else:
                meta.transfer_stats.load.record(LOAD_BYTES, LOAD_S)
                received.add(request)
        self._jobs += [
            (k, True, j.req_id) for k, j in output.kv_connector_metadata.store_jobs.items()
        ]
        self._jobs += [
            (k, False, j.req_id) for k, j in output.kv_connector_metadata.load_jobs.items()
        ]
        names = list(output.num_scheduled_tokens)
        sampled = [[] if self.scheduler.requests[name].is_prefill_chunk else [7] for name in names]
        made = self.scheduler.update_from_output(
            output,
            ModelRunnerOutput(
                req_ids=names,
                req_id_to_index={name: place for place, name in enumerate(names)},
                sampled_token_ids=sampled,
                kv_connector_output=KVConnectorOutput(
                    finished_recving=received, kv_connector_worker_meta=meta
                ),
            ),
        )
        for outputs in made.values():
            stats = getattr(outputs.scheduler_stats, "connector_prefix_cache_stats", None)
            if stats is not None:
                self.queries += stats.queries
                self.hits += stats.hits


def main(folder: Path) -> dict[str, Any]:
    from vramscope.exporters.engine.probe import register

    register()
    scheduler = make_scheduler(folder)
    engine = Engine(scheduler)
    seen = {}

    def look(moment: str) -> None:
        scheduler._vramscope_probe._scan(0.0)
        document = subprocess_sample(os.environ["VRAMSCOPE_RUN_DIR"])
        seen[moment] = document | {"native": {"queries": engine.queries, "hits": engine.hits}}

    first = list(range(100, 100 + 4 * BLOCK + 1))  # four whole blocks, and one token
    engine.send("first", first)
    engine.finish()
    look("stored")
    scheduler.reset_prefix_cache()  # the GPU forgets, the tier does not
    engine.send("again", first)
    engine.finish()
    look("loaded")
    engine.send("second", list(range(1000, 1000 + 6 * BLOCK + 1)))  # room for four: two leave
    engine.finish()
    look("evicted")
    engine.hold = True
    engine.send("third", list(range(2000, 2000 + 6 * BLOCK + 1)))
    engine.finish()
    look("pinned")
    engine.send("fourth", list(range(3000, 3000 + 4 * BLOCK + 1)))  # six of eight are held
    engine.finish()
    look("refused")
    return seen


def subprocess_sample(folder: str) -> dict[str, Any]:
    """Read the record as another process would: its own locks a process does not see."""
    import subprocess

    read = (
        "import json, sys; from dataclasses import asdict; from pathlib import Path; "
        "from vramscope.exporters.engine.host import HostRecords; "
        "(r,) = [r for r in HostRecords(Path(sys.argv[1])).read() if r.source != 'records']; "
        "print(json.dumps({'error': r.error, 'capabilities': dict(r.sample.capabilities), "
        "'offload': asdict(r.sample.offload) if r.sample.offload else None}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", read, folder], capture_output=True, text=True, check=True
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(Path(sys.argv[1]))) + "\n")
