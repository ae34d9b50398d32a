"""What a GPU source is. Opening one is its constructor's work."""

from typing import Protocol

from vramscope.exporters.signals.gpu import GpuReading

__all__ = ["GpuSource"]


class GpuSource(Protocol):
    """Reads all GPUs of the host. Used by one thread at a time.

    A constructor raises ``SourceUnavailableError`` with one line that says what is missing and
    what to install.
    """

    name: str
    """``dcgm``, ``nvml``: the ``source`` label and what ``--gpu-source`` takes."""

    def read(self) -> GpuReading:
        """Return what is there now; one lost GPU is an entry of ``errors``, not an exception.

        Raises:
            SourceUnavailableError: the library or host engine is gone; the next read tries to
                reconnect.
        """

    def close(self) -> None:
        """Let go of the library or host engine."""
