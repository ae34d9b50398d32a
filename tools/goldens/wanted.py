"""Which models have goldens, and for which tensor-parallel sizes and KV data types."""

from dataclasses import dataclass
from pathlib import Path

__all__ = ["GOLDENS", "MODELS", "WANTED", "Variant", "Wanted"]

MEMORY_TESTS = Path(__file__).parents[2] / "tests/exporters/signals/memory"
MODELS = MEMORY_TESTS / "models"
"""NAME.json: a config.json, written by hand from the published dimensions."""
GOLDENS = MEMORY_TESTS / "goldens"
"""NAME.json: what vLLM builds for it."""


@dataclass(frozen=True)
class Variant:
    """One build of a model."""

    tensor_parallel: int
    kv_cache_dtype: str = "auto"

    @property
    def label(self) -> str:
        """How a person sees it."""
        kv = "" if self.kv_cache_dtype == "auto" else f"/{self.kv_cache_dtype}"
        return f"TP{self.tensor_parallel}{kv}"


@dataclass(frozen=True)
class Wanted:
    """A model of ``MODELS`` and what is built for it."""

    model: str
    tensor_parallel: tuple[int, ...] = (1, 4, 8)
    """Without those that don't divide the attention heads, which vLLM refuses."""
    also: tuple[Variant, ...] = ()

    @property
    def variants(self) -> list[Variant]:
        """Every build, in the order of the golden file."""
        return [*map(Variant, self.tensor_parallel), *self.also]


FP8_KV = Variant(1, "fp8")

WANTED = (
    Wanted("llama3-8b", also=(FP8_KV,)),
    Wanted("qwen25-7b", (1, 4), also=(FP8_KV,)),  # 28 heads
    Wanted("llama32-1b"),  # tied embeddings
    Wanted("deepseek-v2-lite", also=(FP8_KV,)),  # MLA without a low-rank query
    Wanted("gemma3-4b"),  # sliding windows of two kinds of layers, more heads than KV heads
    Wanted("jamba-mini"),  # mamba, attention and experts
    Wanted("mixtral-8x7b"),
    Wanted("llama3-70b"),
    Wanted("mistral-7b-v01"),  # a sliding window in every layer
    Wanted("qwen3-8b"),  # norms of queries and keys
    Wanted("qwen3-30b-a3b"),
    Wanted("gemma2-9b"),
    Wanted("gpt-oss-20b-bf16"),
    Wanted("deepseek-v3-bf16"),
    Wanted("phi3-mini"),  # fused projections, as many KV heads as heads
    Wanted("falcon-7b", (1,)),  # 71 heads, one KV head
    Wanted("nemotron-h-8b"),
    Wanted("qwen3-next"),  # linear attention
    Wanted("llama4-scout"),  # chunked local attention
    Wanted("qwen25-vl-7b", (1, 4)),  # a vision tower
    Wanted("mamba-2.8b"),  # state only
    Wanted("falcon-mamba-7b"),
    Wanted("mamba-codestral-7b"),
    Wanted("opt-1.3b"),  # learned positions
    Wanted("gpt2", (1, 4)),  # 12 heads
    Wanted("llama3-8b-fp8"),
    Wanted("llama3-8b-fp8-block"),
    Wanted("llama3-8b-w8a8"),
    Wanted("llama3-8b-awq"),
    Wanted("llama3-8b-gptq"),
    Wanted("gpt-oss-20b"),
    Wanted("qwen3-30b-a3b-fp8", (1, 2)),  # an expert's 768 columns are 6 blocks
    Wanted("deepseek-v3"),
)
