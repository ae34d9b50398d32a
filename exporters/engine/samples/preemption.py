"""The sample of an engine's preemptions."""

from collections.abc import Mapping

from vramscope.exporters.engine.samples.histogram import histogram_sample
from vramscope.exporters.signals.request_samples import PreemptionSample

__all__ = ["preemption_sample"]


def preemption_sample(fields: Mapping[str, float]) -> PreemptionSample:
    """Build the sample from the fields of an engine's last step and scan.

    Raises:
        KeyError, ValueError: the record lacks a field or has a wrong one.
    """
    return PreemptionSample(
        victims=int(fields["preemption_victims"]),
        repeats=int(fields["preemption_repeats"]),
        rehit_tokens=int(fields["preemption_rehit_tokens"]),
        abandoned_tokens=int(fields["preemption_abandoned_tokens"]),
        resumed=int(fields["preemption_resumed"]),
        left=int(fields["preemption_left"]),
        waiting=int(fields["preemption_waiting"]),
        most=int(fields["preemption_most"]),
        resumption_s=histogram_sample(fields, "preemption_resumption_s"),
        victim_age_s=histogram_sample(fields, "preemption_victim_age_s"),
    )
