"""What an engine's own /metrics page says of it."""

from dataclasses import dataclass

__all__ = ["NativeSample"]


@dataclass(frozen=True, slots=True)
class NativeSample:
    """One data-parallel rank, as vLLM counts it; None is what the page does not say.

    Counters are vLLM's own: they restart with its API server.

    Attributes:
        model: the name it is served under.
        dp_rank: data-parallel rank.
        running: requests in the running batch.
        waiting: requests queued.
        kv_usage_ratio: referenced blocks / usable blocks of the pool; what is cached and
            unreferenced counts as free.
        blocks: usable blocks of the pool (the null block is not).
        block_size: token slots of a block.
        generated_tokens: tokens generated.
        prompt_tokens: prompt tokens of requests whose prefill is complete, cached ones too.
        prefix_hit_tokens: prompt tokens found in GPU memory at first schedule.
        external_queried_tokens: prompt tokens looked up outside the GPU at first schedule.
        external_hit_tokens: those that were found there.
        preemptions: as counted when the request's next output arrives; late and incomplete.
        finished: requests that were answered (aborted ones are not counted reliably).
        lora_slots: adapters that fit into GPU memory.
        offload_load_bytes: loaded from CPU memory, all workers together.
        offload_store_bytes: stored to CPU memory, all workers together.
        offload_load_seconds: time of those loads, summed over transfers.
        offload_store_seconds: time of those stores.
        offload_refused_full: stores that found no room.
        offload_pinned_ratio: share of the CPU tier that transfers hold now.
    """

    model: str
    dp_rank: int
    running: float | None = None
    waiting: float | None = None
    kv_usage_ratio: float | None = None
    blocks: int | None = None
    block_size: int | None = None
    generated_tokens: float | None = None
    prompt_tokens: float | None = None
    prefix_hit_tokens: float | None = None
    external_queried_tokens: float | None = None
    external_hit_tokens: float | None = None
    preemptions: float | None = None
    finished: float | None = None
    lora_slots: int | None = None
    offload_load_bytes: float | None = None
    offload_store_bytes: float | None = None
    offload_load_seconds: float | None = None
    offload_store_seconds: float | None = None
    offload_refused_full: float | None = None
    offload_pinned_ratio: float | None = None

    @property
    def cached_tokens(self) -> float | None:
        """Prompt tokens found at first schedule, in GPU memory or outside."""
        if self.prefix_hit_tokens is None:
            return None
        return self.prefix_hit_tokens + (self.external_hit_tokens or 0)
