"""What a source saw of an engine's requests and steps, as frozen values."""

from collections.abc import Mapping
from dataclasses import dataclass

from vramscope.exporters.signals.histogram import HistogramSample

__all__ = ["LoadSample", "PreemptionSample"]


@dataclass(frozen=True, slots=True)
class PreemptionSample:
    """Preemptions of one engine, beyond their counts by reason. Counters since start.

    Attributes:
        victims: requests preempted at least once.
        repeats: preemptions of a request that had been preempted before.
        rehit_tokens: of the tokens lost, those found in the prefix cache at resumption.
        abandoned_tokens: of the tokens lost, those whose request left before they were there again.
        resumed: preempted requests that ran again, once a time.
        left: requests that left between preemption and resumption.
        waiting: preempted requests that have not run again yet.
        most: preemptions of the live request that had the most.
        resumption_s: time from preemption to resumption.
        victim_age_s: time from first schedule to preemption.
    """

    victims: int
    repeats: int
    rehit_tokens: int
    abandoned_tokens: int
    resumed: int
    left: int
    waiting: int
    most: int
    resumption_s: HistogramSample
    victim_age_s: HistogramSample


@dataclass(frozen=True, slots=True)
class LoadSample:
    """What an engine's steps compute, and what waits for them. Counters since start.

    Attributes:
        step_s: time of a step.
        queue_s: time from queued to first scheduled.
        requests: requests of the completed steps, summed over steps.
        decode_tokens: tokens computed that were no prefill.
        batch_requests: requests of the last step.
        batch_tokens: tokens of the last step.
        waiting: requests in the queue by what keeps them there; sums to ``waiting`` of the scan.
        oldest_wait_s: time the oldest request never scheduled has waited; None without one.
    """

    step_s: HistogramSample
    queue_s: HistogramSample
    requests: int
    decode_tokens: int
    batch_requests: int
    batch_tokens: int
    waiting: Mapping[str, int]
    oldest_wait_s: float | None
