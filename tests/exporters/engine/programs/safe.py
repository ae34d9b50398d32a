"""Breaks the probe of a real engine, one way after the other: ``safe.py MODEL ADAPTERS [WHAT]``.

A program and not a test, since vLLM takes its settings from the environment and fills its
process. Each callable that the probe hooks into vLLM raises, in turn; then the disk and the
readers fail. With WHAT: all hooks whose name has it raise, from the start on. Prints one JSON
object: the answers, and what an exporter said.
"""

import errno
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

HERE = Path(__file__).parent
RUN_DIR = Path(os.environ["VRAMSCOPE_RUN_DIR"])
FLAGS = {
    "block_size": 32,
    "dtype": "float32",
    "enable_lora": True,
    "enforce_eager": True,
    "max_cpu_loras": 2,
    "max_lora_rank": 8,
    "max_loras": 1,
    "max_model_len": 512,
    "max_num_batched_tokens": 128,
    "max_num_seqs": 8,
    "num_gpu_blocks_override": 20,
    "seed": 0,
}
FAULT = "injected by the test"
READ_FOREVER = """
import sys
from vramscope.exporters.engine.reader import RecordReader
record = RecordReader(sys.argv[1])
while True:
    record.step()
    print(flush=True)
"""


class Faults:
    """Stands between the probe and ``hook``: any callable that is hooked can be told to raise."""

    def __init__(self, always: str | None) -> None:
        from vramscope.exporters.engine.probe import hooks

        self.keys: dict[str, Any] = {}
        self.called: set[str] = set()
        self.fired: set[str] = set()
        self.armed: str | None = None
        self._always = always
        self._hook = hooks.hook
        # Before the probe's modules import it from there.
        hooks.hook = self._breakable_hook  # type: ignore[assignment]

    def _breakable_hook(
        self, owner: Any, name: str, guard: Any, before: Any = None, after: Any = None, **kw: Any
    ) -> bool:
        kind = owner.__name__ if isinstance(owner, type) else type(owner).__name__
        return self._hook(
            owner,
            name,
            guard,
            before=before and self._breakable(f"{kind}.{name}", before, guard),
            after=after and self._breakable(f"{kind}.{name}", after, guard),
            **kw,
        )

    def _breakable(self, where: str, call: Callable[..., Any], guard: Any) -> Callable[..., Any]:
        key = f"{where}: {call.__qualname__}"
        self.keys[key] = guard

        always = self._always is not None and self._always in key

        def breakable(*args: Any, **kwargs: Any) -> Any:
            self.called.add(key)
            if always or self.armed == key:
                self.fired.add(key)
                raise ZeroDivisionError(FAULT)
            return call(*args, **kwargs)

        return breakable


class Engine:
    """A real engine, and the same load each time it is asked."""

    def __init__(self, model: str, adapters: str) -> None:
        from vllm import LLM
        from vllm.lora.request import LoRARequest

        self.llm = LLM(model, **FLAGS).llm_engine
        self.core = self.llm.engine_core.engine_core
        self.scheduler = self.core.scheduler
        self._loras = [LoRARequest(f"ad{k}", k + 1, f"{adapters}/ad{k}") for k in range(3)]
        self._runs = 0

    def answers(self, each_step: Callable[[int], None] = lambda step: None) -> dict[str, list[int]]:
        """Serve 12 requests that share beginnings, preempt each other, and of which one ends.

        Calls everything of vLLM's that the probe hooks and that can be called without harm.
        """
        self._runs += 1
        for k in range(12):
            self._send(k)
        tokens: dict[str, list[int]] = {}
        step = 0
        while self.llm.has_unfinished_requests():
            for output in self.llm.step():
                tokens[output.request_id.split("-")[2]] = list(output.outputs[0].token_ids)
            step += 1
            if step == 20:
                self.llm.abort_request([f"cmpl-{self._runs}-5"])
                self.core.reset_prefix_cache(reset_running_requests=True)
            each_step(step)
        self._call_the_rest()
        return tokens

    def _send(self, k: int) -> None:
        from vllm import SamplingParams

        prompt = [3 + (7 * n) % 200 for n in range(64 * (k % 2))]
        prompt += [3 + (11 * n + 13 * k) % 200 for n in range(40 + 5 * k)]
        self.llm.add_request(
            f"cmpl-{self._runs}-{k}",
            {"prompt_token_ids": prompt},
            SamplingParams(max_tokens=30 + k, temperature=0, ignore_eos=True),
            lora_request=self._loras[k % 3] if k % 4 == 3 else None,
        )

    def _call_the_rest(self) -> None:
        manager = self.scheduler.kv_cache_manager
        pool = manager.block_pool
        manager.get_computed_blocks_for_connector(SimpleNamespace(skip_reading_prefix_cache=True))
        self.core.reset_prefix_cache()
        pool.unpin_blocks([], lambda block: None)
        pool.move_block_hashes(*pool.blocks[1:3])
        pool.evict_blocks({1})
        self.scheduler.set_pause_state(self.scheduler.pause_state)
        self.llm.remove_lora(1)
        worker = self.core.model_executor.driver_worker.worker
        worker.model_runner.lora_manager.remove_all_adapters()


class Reader:
    """What an exporter on this host says."""

    def __init__(self) -> None:
        command = [sys.executable, str(HERE / "page_on_demand.py"), str(RUN_DIR)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self) -> dict[str, list[str]]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        said: dict[str, list[str]] = json.loads(self._process.stdout.readline())
        return said

    def close(self) -> None:
        self._process.communicate(timeout=30)


def main(model: str, adapters: str, always: str | None = None) -> dict[str, Any]:
    faults = Faults(always)
    engine = Engine(model, adapters)
    if always is not None:
        return {"answers": engine.answers(), "fired": sorted(faults.fired)}
    reader = Reader()
    result = {
        "start": sorted(faults.called),
        "answers": engine.answers(),
        "paused": paused(engine, reader),
        "hooks": each_hook(engine, faults, reader),
        "disasters": {
            name: attach_and(engine, disaster, reader) for name, disaster in DISASTERS.items()
        },
    }
    reader.close()
    return result


def attach_again(engine: Engine) -> Any:
    """Give the engine a new probe in place of the one that was."""
    from vramscope.exporters.engine.probe import attach

    old = vars(engine.scheduler).pop("_vramscope_probe", None)
    if old is not None:
        old.guard.stop()
        if Path(old.record).exists():
            old._writer.close()
    attach._attach_scheduler(engine.scheduler)
    return vars(engine.scheduler).get("_vramscope_probe")


def each_hook(engine: Engine, faults: Faults, reader: Reader) -> dict[str, Any]:
    """Run the load once for each hooked callable, which raises when it is called."""
    found = {}
    for key in list(faults.keys):
        for guard in faults.keys.values():  # of workers, whose probes stay
            guard.enabled = True
        attach_again(engine)
        faults.armed = key
        answers = engine.answers()
        if key.startswith("Scheduler.shutdown"):
            engine.scheduler.shutdown()
        faults.armed = None
        found[key] = {"answers": answers, "fired": key in faults.fired, **reader.ask()}
    return found


def paused(engine: Engine, reader: Reader) -> list[list[str]]:
    """Return what is said of an engine at work, paused with its requests in it, and resumed."""
    from vllm.v1.core.sched.interface import PauseState

    attach_again(engine)
    said = []

    def pause(step: int) -> None:
        if step == 10:
            for state in (PauseState.UNPAUSED, PauseState.PAUSED_ALL, PauseState.UNPAUSED):
                engine.scheduler.set_pause_state(state)
                said.append(reader.ask()["page"])

    engine.answers(pause)
    return said


def attach_and(engine: Engine, disaster: Callable[[Any], Any], reader: Reader) -> dict[str, Any]:
    """Run the load with a new probe while something else goes wrong."""
    with disaster(engine) as each_step:
        answers = engine.answers(each_step)
        said = reader.ask()
    return {"answers": answers, **said}


@contextmanager
def full_disk(engine: Engine) -> Iterator[Callable[[int], None]]:
    """No byte can be written from step 10 on, not even that it is so."""
    attach_again(engine)
    pwrite = os.pwrite

    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def at(step: int) -> None:
        if step == 10:
            os.pwrite = full

    try:
        yield at
    finally:
        os.pwrite = pwrite


@contextmanager
def file_size_limit(engine: Engine) -> Iterator[Callable[[int], None]]:
    """The kernel refuses what lies past the record's first 64 KiB: the state can be written."""
    attach_again(engine)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def at(step: int) -> None:
        if step == 10:
            resource.setrlimit(resource.RLIMIT_FSIZE, (65536, limits[1]))

    try:
        yield at
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@contextmanager
def full_disk_at_start(engine: Engine) -> Iterator[Callable[[int], None]]:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        assert attach_again(engine) is None
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    yield lambda step: None


@contextmanager
def read_only_folder(engine: Engine) -> Iterator[Callable[[int], None]]:
    os.environ["VRAMSCOPE_RUN_DIR"] = "/proc/vramscope"  # where not even root may make a file
    try:
        assert attach_again(engine) is None
    finally:
        os.environ["VRAMSCOPE_RUN_DIR"] = str(RUN_DIR)
    yield lambda step: None


@contextmanager
def vanished_folder(engine: Engine) -> Iterator[Callable[[int], None]]:
    attach_again(engine)
    yield lambda step: shutil.rmtree(RUN_DIR) if step == 10 else None


@contextmanager
def truncated_record(engine: Engine) -> Iterator[Callable[[int], None]]:
    """The record is cut while it is written; the writes go on and leave a hole."""
    record = attach_again(engine).record
    yield lambda step: os.truncate(record, 1000) if step == 10 else None


@contextmanager
def killed_reader(engine: Engine) -> Iterator[Callable[[int], None]]:
    record = attach_again(engine).record
    command = [sys.executable, "-c", READ_FOREVER, record]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()  # it reads

    def at(step: int) -> None:
        if step == 10:
            process.send_signal(signal.SIGKILL)
            process.communicate()

    yield at


DISASTERS: dict[str, Callable[[Engine], Any]] = {
    call.__name__: call
    for call in (
        full_disk,
        file_size_limit,
        full_disk_at_start,
        read_only_folder,
        truncated_record,
        killed_reader,
        vanished_folder,
    )
}


if __name__ == "__main__":
    outcome = main(*sys.argv[1:])
    sys.stdout.write("\n" + json.dumps(outcome) + "\n")
