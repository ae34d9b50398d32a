"""The sample of an engine's steps and queue."""

from collections.abc import Mapping

from vramscope.exporters.engine.samples.histogram import histogram_sample
from vramscope.exporters.signals.request_samples import LoadSample

__all__ = ["load_sample"]

OLDEST = "waiting_oldest_s"
WAITING = "waiting_"


def load_sample(fields: Mapping[str, float]) -> LoadSample:
    """Build the sample from the fields of an engine's last step and scan.

    Raises:
        KeyError, ValueError: the record lacks a field or has a wrong one.
    """
    return LoadSample(
        step_s=histogram_sample(fields, "load_step_s"),
        queue_s=histogram_sample(fields, "load_queue_s"),
        requests=int(fields["load_requests"]),
        decode_tokens=int(fields["load_decode_tokens"]),
        batch_requests=int(fields["batch_requests"]),
        batch_tokens=int(fields["batch_tokens"]),
        waiting={
            name.removeprefix(WAITING): int(count)
            for name, count in fields.items()
            if name.startswith(WAITING) and name != OLDEST
        },
        oldest_wait_s=fields[OLDEST] or None,
    )
