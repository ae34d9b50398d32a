"""Steps several engines in turns, each in a process of its own forked from this one.

Forked, so that they are alike to the address; on one core, so that none has the better one.
Not in one process: they would share the interpreter's inline caches, which fit one class only,
and an engine with the probe has a class of its own.
"""

import gc
import multiprocessing
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

__all__ = ["Ask", "Turns", "forked"]

Ask = Callable[[str], Any]
"""What an engine's process does when told a word."""


class Turns:
    """The processes. Told ``step``, each answers with a list: what it measured, step by step."""

    def __init__(self, pipes: Mapping[str, Connection]) -> None:
        self._pipes = pipes

    def step(self, turns: int, warm_turns: int) -> dict[str, list[Any]]:
        """Return what each measured by name, the warm-up's left out; the order alternates."""
        measured: dict[str, list[Any]] = {name: [] for name in self._pipes}
        names = list(self._pipes)
        for turn in range(warm_turns + turns):
            first = turn // 2 % len(names)
            order = names[first:] + names[:first]
            for name in order if turn % 2 else reversed(order):
                answer = self.ask(name, "step")
                if turn >= warm_turns:
                    measured[name] += answer
        return measured

    def ask(self, name: str, word: str) -> Any:
        """Have one of them do something, and return its answer."""
        self._pipes[name].send(word)
        return self._pipes[name].recv()


@contextmanager
def forked(make: Mapping[str, Callable[[], Ask]]) -> Iterator[Turns]:
    """Fork a process for each name, which makes its engine and then does what it is asked."""
    context = multiprocessing.get_context("fork")
    pipes: dict[str, Connection] = {}
    processes = []
    for name, making in make.items():
        pipes[name], theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, making), daemon=True)
        process.start()
        theirs.close()  # so that a process that dies is an EOFError here
        processes.append(process)
    for pipe in pipes.values():
        pipe.recv()
    yield Turns(pipes)
    for pipe in pipes.values():
        pipe.send("")
    for process in processes:
        process.join()


def _serve(pipe: Connection, making: Callable[[], Ask]) -> None:
    ask = making()
    gc.collect()
    gc.freeze()  # as vLLM does once it is up
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    pipe.send("ready")
    while word := pipe.recv():
        pipe.send(ask(word))
