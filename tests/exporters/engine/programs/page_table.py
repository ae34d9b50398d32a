"""Runs a real vLLM engine in this process and compares each dump with its block manager.

A program as exact.py is, with its traffic: ``page_table.py MODEL ADAPTERS``. A reader asks all
the time, so that each step makes a dump. In the middle the command runs against it, as a process
of its own. Prints one JSON object.
"""

import json
import os
import runpy
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

COMMANDS = (
    ("terminal", ["--by", "request"]),
    ("json", ["--json"]),
    ("svg", ["-o", "blocks.svg"]),
    ("requests", ["--by", "request", "-o", "requests.svg"]),
    ("png", ["-o", "blocks.png"]),
)


def main(model: str, adapters: str) -> dict[str, Any]:
    from vllm import LLM

    from vramscope.exporters.engine.probe import dump

    dump.LOOK_PERIOD_S, dump.MOST_SHARE = 0.0, 1e9  # a dump each step
    exact = runpy.run_path(str(Path(__file__).parent / "exact.py"))
    engine = LLM(model, **exact["FLAGS"]).llm_engine
    check = Check(engine.engine_core.engine_core.scheduler)
    send_twins(engine, check)
    exact["drive"](engine, adapters, check.after_step)
    return {
        "mismatches": check.mismatches[:20],
        "seen": dict(check.seen),
        "commands": {name: check.finished(process) for name, process in check.commands.items()},
    }


def send_twins(engine: Any, check: "Check") -> None:
    """Send a prompt twice that fills its last block: vLLM computes that block anew."""
    from vllm import SamplingParams

    for name in ("cmpl-twin-0", "cmpl-twin-1"):
        params = SamplingParams(max_tokens=5, temperature=0, ignore_eos=True)
        engine.add_request(name, {"prompt_token_ids": list(range(3, 67))}, params)
        while engine.has_unfinished_requests():
            engine.step()
            check.after_step()


class Check:
    """Compares with what vLLM's own objects say, block by block."""

    def __init__(self, scheduler: Any) -> None:
        from vramscope.exporters.engine.reader import RecordReader

        self.folder = Path(os.environ["VRAMSCOPE_RUN_DIR"])
        (self.path,) = self.folder.glob("*.engine0.*.vramscope")
        # Never closed: that would drop its writer's lock, which is this process's.
        self.record = RecordReader(str(self.path))
        self.record.ask()
        self.scheduler = scheduler
        self.mismatches: list[str] = []
        self.seen: Counter[str] = Counter()
        self.commands: dict[str, subprocess.Popen[str]] = {}
        self.steps = 0

    def after_step(self) -> None:
        self.steps += 1
        if self.steps % 20 == 0 and len(self.commands) < len(COMMANDS):
            name, arguments = COMMANDS[len(self.commands)]
            self.commands[name] = self._start(arguments)
        data = self.path.with_suffix(".blocks").read_bytes()
        self._compare(data)

    def _start(self, arguments: list[str]) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", "vramscope.exporters.cli", "blocks", "exact", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        )

    def finished(self, process: "subprocess.Popen[str]") -> list[Any]:
        out, err = process.communicate(timeout=60)
        return [process.returncode, out, err]

    def _compare(self, data: bytes) -> None:
        from vramscope.exporters.blocks.from_dump import page_table
        from vramscope.exporters.blocks.usage import pool_sample
        from vramscope.exporters.engine.dump_file import decode

        header, arrays = decode(data)
        table = page_table(self.record.header, header, arrays)
        scan = self.record.scan()
        kv = pool_sample(table.pools[0])
        for name in ("blocks", "live", "slack", "held", "evictable", "clean", "reserved"):
            self._want(f"sum of {name}", getattr(kv, name), scan[f"pool0_{name}"])
        self._want("moment", table.time_s, scan["scan_time_s"])
        manager = self.scheduler.kv_cache_manager
        pool = manager.block_pool
        hashes = {block.block_id: block.block_hash for block in pool.blocks}
        for block in table.pools[0].blocks:
            number = block.number
            self._want(f"references of {number}", block.references, pool.blocks[number].ref_cnt)
            self._want(f"hash of {number}", block.twin is not None, hashes[number] is not None)
            if block.twin is not None:
                self._want(f"twin of {number}", hashes[block.twin], hashes[number])
            self.seen["duplicates"] += block.is_duplicate
            self.seen["shared"] += block.references > 1
            self.seen[block.state] += 1
        running = {request.request_id for request in self.scheduler.running}
        self._want("holders that run", sum(r.is_running for r in table.requests), len(running))
        tables = sorted(row.blocks for row in table.tables)
        theirs = [manager.get_block_ids(name)[0] for name in self.scheduler.requests]
        self._want("tables", tables, sorted(tuple(ids) for ids in theirs if ids))
        # A part of a hash would be enough to test a guess of the prompt by.
        leaks = [number for number, value in hashes.items() if value and value[:6] in data]
        self._want("hashes in the dump", leaks, [])

    def _want(self, what: str, got: Any, want: Any) -> None:
        if got != want:
            self.mismatches.append(f"step {self.steps}, {what}: {got}, want {want}")


if __name__ == "__main__":
    sys.stdout.write("\n" + json.dumps(main(*sys.argv[1:])) + "\n")
