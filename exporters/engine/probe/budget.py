"""A worker's part for device memory: what this process put there, by purpose."""

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from vramscope.exporters.engine.probe.hooks import Guard, hook

__all__ = ["Budget", "storage_bytes"]

SOURCES = ("weights", "kv_pool", "lora_slots", "encoder_cache", "activation_peak", "graphs")
ABSENT = math.nan
"""How a row of numbers says that there is none."""


class Budget:
    """Bytes by purpose, each measured when vLLM has made what it is for.

    Tensors are counted by their storages, each once, where they are made: that is what they
    take, quantised or shared. vLLM's own figure for the model is the drop in free memory while
    it loaded, which holds other processes' changes and the allocator's holes as well, and which
    a CPU does not have.

    Args:
        worker: vLLM's, its model loaded.
        publish: called when something has changed outside a step.
        warn: takes the reason, once, if a release has changed too much.
    """

    scan_fields = (
        *(f"vram_{source}_bytes" for source in SOURCES),
        "vram_allocator_bytes",
        "vram_graphs_allocator_bytes",
        "vram_asleep",
    )

    def __init__(
        self, worker: Any, publish: Callable[[], None], warn: Callable[[str], None]
    ) -> None:
        self._worker = worker
        self._publish = publish
        self._warn = warn
        self._bytes: dict[str, float] = {}
        self._graphs_allocator = 0.0
        self._allocator_before = ABSENT
        self._asleep: set[str] = set()
        self.guard = Guard(self._switched_off)
        self._measure("load_model", self._measure_model)
        hook(worker, "determine_available_memory", self.guard, after=self._after_profile)
        hook(worker, "initialize_from_config", self.guard, after=self._after_kv)
        hook(worker, "compile_or_warm_up_model", self.guard, after=self._after_warm_up)
        runner = worker.model_runner
        hook(
            runner,
            "capture_model",
            self.guard,
            before=self._before_capture,
            after=self._after_capture,
        )
        if self._on_gpu():  # elsewhere vLLM ignores both
            hook(worker, "sleep", self.guard, after=self._after_sleep)
            hook(worker, "wake_up", self.guard, after=self._after_wake_up)

    def capabilities(self) -> dict[str, bool]:
        """Return whether the memory is known by purpose."""
        return {"vram": self.guard.enabled and bool(self._bytes)}

    def scan(self, now_s: float) -> Sequence[float]:
        """Return the values of ``scan_fields``."""
        del now_s
        self._measure("encoder_cache", self._measure_encoder_cache)
        return (
            *(self._bytes.get(source, ABSENT) for source in SOURCES),
            self._allocator_bytes() if self.guard.enabled else ABSENT,
            self._graphs_allocator,
            bool(self._asleep),
        )

    def _measure(self, where: str, measure: Callable[[], None]) -> None:
        if self.guard.enabled:
            try:
                measure()
            except Exception as error:  # noqa: BLE001  # a release without one of these names
                self.guard.disable(where, error)

    def _switched_off(self, error: str) -> None:
        self._bytes.clear()
        self._warn(f"no VRAM budget: {error}")

    # What vLLM has made, in the order in which it does.

    def _measure_model(self) -> None:
        runner = self._worker.model_runner
        draft = getattr(runner, "get_draft_model", lambda: None)()
        models = [model for model in (self._worker.get_model(), draft) if model is not None]
        parameters = [one for model in models for one in model.parameters()]
        buffers = [one for model in models for one in model.buffers()]
        if all(one.numel() for one in parameters):
            self._bytes["weights"] = storage_bytes([*parameters, *buffers], self._device())
        # Else a kernel keeps some in a form of its own that PyTorch doesn't see (vLLM's CPU
        # build does): part of them is not the weights.
        manager = getattr(runner, "lora_manager", None)
        if manager is not None:
            layers = manager._adapter_manager.modules.values()  # noqa: SLF001  # no other way
            self._bytes["lora_slots"] = storage_bytes(_slots(layers), self._device())

    def _after_profile(self, *_: Any, **__: Any) -> None:
        peak = getattr(self._worker, "peak_activation_memory", None)
        if peak is not None:
            self._bytes["activation_peak"] = peak - self._graphs_in_peak()

    def _graphs_in_peak(self) -> float:
        """Return what releases that estimate the graphs have put into the peak."""
        envs = sys.modules.get("vllm.envs")
        if not getattr(envs, "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS", False):
            return 0
        return float(getattr(self._worker, "cudagraph_memory_estimate", 0))

    def _after_kv(self, _: Any, kv_config: Any = None, *__: Any, **___: Any) -> None:
        caches = storage_bytes(_tensors(self._worker.model_runner.kv_caches), self._device())
        planned = sum(tensor.size for tensor in getattr(kv_config, "kv_cache_tensors", ()))
        self._bytes["kv_pool"] = caches or planned

    def _before_capture(self, *_: Any, **__: Any) -> None:
        self._allocator_before = self._allocator_bytes()

    def _after_capture(self, taken: Any, *_: Any, profile_only: bool = False, **__: Any) -> None:
        if profile_only or not isinstance(taken, int):
            return
        grown = self._allocator_bytes() - self._allocator_before
        self._bytes["graphs"] = max(0, taken)
        self._graphs_allocator = 0.0 if math.isnan(grown) else min(max(0.0, grown), max(0, taken))

    def _after_warm_up(self, *_: Any, **__: Any) -> None:
        self._publish()

    def _after_sleep(self, *_: Any, **__: Any) -> None:
        self._asleep = {"weights", "kv_cache"}
        self._publish()

    def _after_wake_up(self, _: Any, tags: Iterable[str] | None = None) -> None:
        self._asleep = set() if tags is None else self._asleep - set(tags)
        self._publish()

    def _measure_encoder_cache(self) -> None:
        runner = self._worker.model_runner
        if not getattr(runner, "supports_mm_inputs", False):
            return
        cache = getattr(runner, "encoder_cache", None)
        outputs = getattr(cache, "encoder_outputs", cache)  # a dict, or a release's object with one
        if outputs is not None:
            tensors = _tensors(list(outputs.values()))
            self._bytes["encoder_cache"] = storage_bytes(tensors, self._device())

    # Where it is.

    def _device(self) -> str:
        return str(self._worker.device.type)

    def _on_gpu(self) -> bool:
        return self.guard.enabled and self._device() == "cuda"

    def _allocator_bytes(self) -> float:
        """Return what PyTorch's allocator holds of the GPU, used and kept for later."""
        if not self._on_gpu():
            return ABSENT
        return float(sys.modules["torch"].cuda.memory_reserved(self._worker.device))


def storage_bytes(tensors: Iterable[Any], device: str) -> int:
    """Return the bytes of the tensors' storages on a kind of device, each storage once."""
    storages = {}
    for tensor in tensors:
        if tensor.device.type == device:
            storage = tensor.untyped_storage()
            storages[storage.data_ptr()] = storage.nbytes()
    return sum(storages.values())


def _slots(layers: Iterable[Any]) -> Iterator[Any]:
    """Yield the tensors that hold adapters' weights, one slot beside the other."""
    for layer in layers:
        for name, value in vars(layer).items():
            if "stacked" in name:
                yield from _tensors(value)


def _tensors(found: Any) -> Iterator[Any]:
    """Yield the tensors of a tensor, or of lists and tuples of them."""
    if hasattr(found, "untyped_storage"):
        yield found
    elif isinstance(found, list | tuple):
        for one in found:
            yield from _tensors(one)
