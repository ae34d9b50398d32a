"""A real vLLM scheduler and KV cache manager that step without a model: tokens are made up.

Everything the probe watches is vLLM's own; only the forward pass is missing, so that what the
probe adds can be told from it.
"""

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from vllm.config import (
    CacheConfig,
    DeviceConfig,
    ModelConfig,
    ParallelConfig,
    SchedulerConfig,
    VllmConfig,
)
from vllm.sampling_params import SamplingParams
from vllm.utils.hashing import get_hash_fn_by_name
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import Request
from vllm.v1.structured_output import StructuredOutputManager

__all__ = ["Load", "Modelless", "configuration"]

BLOCK = 16
BLOCKS = 100_001
"""One of them is the null block."""
MAX_MODEL_LEN = 4096
TOKENS_A_STEP = 1024
"""So that the longer prompts are prefilled in chunks."""
VOCABULARY = 32_000
MODEL = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": MAX_MODEL_LEN,
    "torch_dtype": "float16",
}


def configuration(folder: Path, batch: int) -> VllmConfig:
    """Configure vLLM for a model of which only ``folder``/config.json exists."""
    (folder / "config.json").write_text(json.dumps(MODEL))
    config = VllmConfig(
        model_config=ModelConfig(
            model=str(folder),
            tokenizer=None,
            skip_tokenizer_init=True,
            dtype="float16",
            max_model_len=MAX_MODEL_LEN,
        ),
        scheduler_config=SchedulerConfig(
            max_num_seqs=batch,
            max_num_batched_tokens=TOKENS_A_STEP,
            max_model_len=MAX_MODEL_LEN,
            enable_chunked_prefill=True,
            is_encoder_decoder=False,
            async_scheduling=False,
        ),
        cache_config=CacheConfig(block_size=BLOCK, enable_prefix_caching=True),
        parallel_config=ParallelConfig(),
        device_config=DeviceConfig("cpu"),
    )
    config.cache_config.num_gpu_blocks = BLOCKS
    return config


class Load:
    """Requests that come as others finish, the same ones from the same seed.

    A prompt is a shared beginning of 0 to 512 tokens and 16 to 500 of its own, 1 in 20 of
    them 2,000; an answer has 200 to 1,800 tokens.
    """

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)  # noqa: S311 (a bench)
        self._sent = 0
        self._beginnings = [self._tokens(512) for _ in range(20)]
        hasher = get_hash_fn_by_name("sha256")
        init_none_hash(hasher)
        self._block_hasher = get_request_block_hasher(BLOCK, hasher)

    def next(self, answer_tokens: int | None = None) -> Request:
        """Draw a request; ``answer_tokens`` fixes its length."""
        draw = self._draw
        prompt = draw.choice(self._beginnings)[: draw.choice((0, 0, 128, 256, 512))]
        own = 2000 if draw.random() < 0.05 else draw.randrange(16, 500)
        length = draw.randrange(200, 1800)
        return self._request(prompt + self._tokens(own), answer_tokens or length)

    def of_the_pools_size(self) -> Iterator[Request]:
        """Yield requests that together fill the pool, so that each new block evicts another."""
        for _ in range(BLOCKS * BLOCK // 4000):
            yield self._request(self._tokens(4000), 1)

    def _tokens(self, count: int) -> list[int]:
        return [self._draw.randrange(3, VOCABULARY) for _ in range(count)]

    def _request(self, prompt: list[int], answer_tokens: int) -> Request:
        self._sent += 1
        return Request(
            request_id=f"cmpl-{self._sent}-0-{self._sent:08x}",
            prompt_token_ids=prompt,
            sampling_params=SamplingParams(max_tokens=answer_tokens, ignore_eos=True),
            pooling_params=None,
            arrival_time=0.0,
            block_hasher=self._block_hasher,
        )


class Modelless:
    """One scheduler in steady decode: ``batch`` requests, a new one for each that finishes."""

    def __init__(self, scheduler_class: Any, config: VllmConfig, batch: int, seed: int) -> None:
        spec = FullAttentionSpec(
            block_size=BLOCK, num_kv_heads=2, head_size=32, dtype=torch.float16
        )
        kv_config = KVCacheConfig(
            num_blocks=BLOCKS,
            kv_cache_tensors=[],
            kv_cache_groups=[KVCacheGroupSpec(["layer"], spec)],
        )
        self.scheduler = scheduler_class(
            vllm_config=config,
            kv_cache_config=kv_config,
            structured_output_manager=StructuredOutputManager(config),
            block_size=BLOCK,
            hash_block_size=BLOCK,
            log_stats=True,
        )
        self._load = Load(seed)
        self._arriving = list(self._load.of_the_pools_size())
        while self._arriving or self.scheduler.has_requests():
            self.step_s(replace=False)
        for n in range(batch):
            # Their ends lie apart, as in an engine that has run for long.
            self._arriving.append(self._load.next(answer_tokens=1 + 1000 * n // batch))

    def step_s(self, replace: bool = True) -> float:
        """Step once as the EngineCore does; return the seconds its scheduler took.

        Args:
            replace: send a new request for each that finishes.
        """
        scheduler, arriving = self.scheduler, self._arriving
        started_s = time.perf_counter()
        for request in arriving:
            scheduler.add_request(request)
        output = scheduler.schedule()
        took_s = time.perf_counter() - started_s
        made = _output(output, scheduler.requests)
        started_s = time.perf_counter()
        answers = scheduler.update_from_output(output, made)
        took_s += time.perf_counter() - started_s
        finished = sum(
            one.finish_reason is not None for each in answers.values() for one in each.outputs
        )
        self._arriving = [self._load.next() for _ in range(finished if replace else 0)]
        return took_s


def _output(scheduled: Any, requests: dict[str, Request]) -> ModelRunnerOutput:
    """Return what a model would have: a token for each request past its prefill."""
    ids = list(scheduled.num_scheduled_tokens)
    return ModelRunnerOutput(
        req_ids=ids,
        req_id_to_index={name: index for index, name in enumerate(ids)},
        sampled_token_ids=[[] if requests[name].is_prefill_chunk else [7] for name in ids],
        logprobs=None,
        prompt_logprobs_dict={},
        pooler_output=[],
    )
