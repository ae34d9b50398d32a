"""Signals that ask the controller to stop: the first to drain, the second to hurry."""

import asyncio
import signal

__all__ = ["StopRequests"]


class StopRequests:
    """Turns signals into events.

    Attributes:
        first: set by the first request to stop.
        second: set by the next one.
    """

    def __init__(self) -> None:
        self.first = asyncio.Event()
        self.second = asyncio.Event()

    def ask(self) -> None:
        """Ask once more."""
        (self.second if self.first.is_set() else self.first).set()

    def listen(self) -> None:
        """Listen to SIGINT, SIGTERM and SIGHUP on the running loop.

        SIGHUP too: it comes when a terminal closes, and by default would end the controller
        and leave its engines. Where it is ignored (nohup) it stays so.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, self.ask)
