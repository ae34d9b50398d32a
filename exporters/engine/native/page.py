"""A page of vLLM's to samples, one a data-parallel rank."""

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as openmetrics_families,
)
from prometheus_client.parser import text_string_to_metric_families as text_families

from vramscope.exporters.engine.native import names
from vramscope.exporters.engine.native.fetch import Body
from vramscope.exporters.engine.native.names import Native
from vramscope.exporters.errors import SourceUnavailableError
from vramscope.exporters.signals.native import NativeSample

__all__ = ["read_page"]

PREFIX = "vllm:"
MOST_RANKS = 1024


class _Sample(NamedTuple):
    labels: Mapping[str, str]
    value: float


Samples = dict[str, list[_Sample]]


def read_page(body: Body) -> tuple[NativeSample, ...]:
    """Return what a page says, by data-parallel rank.

    What is not finite, or negative, is not known.

    Raises:
        SourceUnavailableError: it is no page of a vLLM engine.
    """
    samples = _samples(body)
    ranks = sorted(
        {
            (sample.labels.get("engine", ""), sample.labels["model_name"])
            for found in samples.values()
            for sample in found
            if "model_name" in sample.labels
        }
    )
    if not ranks:
        raise SourceUnavailableError(
            f"no {PREFIX} metric with a model_name on the page: want that of a vLLM API server"
        )
    if len(ranks) > MOST_RANKS:
        raise SourceUnavailableError(f"{len(ranks)} engines on one page: want {MOST_RANKS} at most")
    return tuple(_rank(samples, engine, model, len(ranks)) for engine, model in ranks)


def _samples(body: Body) -> Samples:
    """Return the samples that we take something from, by name."""
    found: Samples = {}
    try:
        text = body.data.decode()
        if "openmetrics" in body.content_type:
            families = openmetrics_families(text)  # type: ignore[no-untyped-call]
        else:
            # Nine lines of ten are of histograms: leaving them out saves as much of the time.
            wanted = (line for line in text.split("\n") if line.startswith(_WANTED))
            families = text_families("\n".join(wanted))
        for family in families:
            for sample in family.samples:
                if sample.name in _WANTED:
                    found.setdefault(sample.name, []).append(_Sample(sample.labels, sample.value))
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        # The parser raises what its string handling happens to.
        raise SourceUnavailableError(
            f"the page is no metrics text: {type(error).__name__}: {str(error)[:200]}"
        ) from error
    return found


def _rank(samples: Samples, engine: str, model: str, ranks: int) -> NativeSample:
    def of(name: str, labels: Mapping[str, str] | None = None) -> list[float]:
        want = {"engine": engine, "model_name": model, **(labels or {})}
        return [
            sample.value
            for sample in samples.get(name, ())
            if all(sample.labels.get(label, "") == value for label, value in want.items())
        ]

    def first(alternatives: Iterable[Native]) -> list[float]:
        return next(filter(None, (of(native.name, native.labels) for native in alternatives)), [])

    numbers = {field: _one(first(natives)) for field, natives in names.GAUGES.items()}
    numbers |= {field: _sum(first(natives)) for field, natives in names.COUNTERS.items()}
    aborted = sum(of(names.FINISHED, {"finished_reason": "abort"}))
    finished = _sum(of(names.FINISHED))
    config = next(
        (s.labels for s in samples.get(names.CACHE_CONFIG, ()) if s.labels.get("engine") == engine),
        {},
    )
    blocks = _whole(config.get("num_gpu_blocks"))
    slots = (_whole(s.labels.get("max_lora")) for s in samples.get(names.LORA_INFO, ()))
    return NativeSample(
        model=model,
        dp_rank=_whole(engine) or 0,
        # Of several ranks vLLM gives the sum, as if each had it.
        blocks=blocks - 1 if blocks and ranks == 1 else None,
        block_size=_whole(config.get("block_size")),
        finished=None if finished is None else _known(finished - aborted),
        lora_slots=next(filter(None, slots), None),
        **numbers,
    )


_WANTED = (
    *(native.name for natives in names.GAUGES.values() for native in natives),
    *(native.name for natives in names.COUNTERS.values() for native in natives),
    *(names.FINISHED, names.CACHE_CONFIG, names.LORA_INFO),
)


def _one(values: list[float]) -> float | None:
    """Return the only value: of several processes that each say another, none is known."""
    return _known(values[0]) if len(values) == 1 else None


def _sum(values: list[float]) -> float | None:
    return _known(sum(values)) if values else None


def _known(value: float) -> float | None:
    return value if math.isfinite(value) and value >= 0 else None


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdecimal() else None
