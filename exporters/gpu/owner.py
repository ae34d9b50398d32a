"""Who uses a GPU, as the labels its series carry."""

from typing import NamedTuple

__all__ = ["Owner"]


class Owner(NamedTuple):
    """Label values of one GPU or MIG instance, in label order; empty is not known or none.

    A GPU that several containers hold is ``shared`` and has the labels of none of them, and so
    with jobs: its numbers are nobody's alone, and a series for each would count them twice.
    """

    pod: str = ""
    namespace: str = ""
    container: str = ""
    hpc_job: str = ""
    shared: str = ""
    """``true``, or empty."""
