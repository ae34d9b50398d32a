"""Who uses a GPU, as labels: found by ``exporters.gpu.owners``, put on pages."""

from typing import NamedTuple

__all__ = ["NOBODY", "Owner"]


class Owner(NamedTuple):
    """The labels that say who a GPU or MIG instance was given to; empty where not known."""

    pod: str = ""
    namespace: str = ""
    container: str = ""
    shared: str = ""
    """``true`` when several containers hold it (time-slicing, MPS): its numbers are no one's
    alone."""


NOBODY = Owner()
