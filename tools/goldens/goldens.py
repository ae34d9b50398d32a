"""Writes what vLLM itself builds for each model of the memory tests: ``make goldens-kv``.

The files are committed; the tests compare vramscope's memory arithmetic with them. Each build is a
process of its own, of 10 to 30 s and about 1 GiB; nothing is downloaded and no weights are made.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from wanted import GOLDENS, MODELS, WANTED, Variant, Wanted

META_MODEL = Path(__file__).with_name("meta_model.py")
ENVIRONMENT = {
    **os.environ,
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_PLUGINS": "",  # no probe
}
LINE_LENGTH = 240
COUNTED = (
    "rank 0, before weights are processed: weight_bytes are parameters, buffer_bytes buffers,"
    " shared ones once; layers before and groups after vLLM aligns a hybrid's block sizes"
)


class BuildError(Exception):
    """vLLM did not build a variant; says what it said last."""


def main() -> int:
    """Build all, or the models named; return 1 when some could not be built."""
    parser = argparse.ArgumentParser(prog="make goldens-kv", description=__doc__)
    parser.add_argument("models", nargs="*", help="models to build again (all)")
    names = parser.parse_args().models
    chosen = [wanted for wanted in WANTED if not names or wanted.model in names]
    if unknown := set(names) - {wanted.model for wanted in WANTED}:
        parser.error(f"{', '.join(sorted(unknown))}: want models of {MODELS}")
    failed = []
    for number, wanted in enumerate(chosen, 1):
        print(f"[{number}/{len(chosen)}] {wanted.model}", end="", flush=True)
        started_s = time.monotonic()
        try:
            write(wanted)
            ending = "in"
        except BuildError as error:
            failed.append(f"{wanted.model}: {error}")
            ending = "failed after"
        print(f" {ending} {time.monotonic() - started_s:.0f} s", flush=True)
    print(f"{len(chosen) - len(failed)} goldens written to {GOLDENS}")
    for line in failed:
        print(f"not built: {line}", file=sys.stderr)
    return 1 if failed else 0


def write(wanted: Wanted) -> None:
    """Build every variant of a model, then write its golden.

    Raises:
        BuildError: one could not be built; the file stays as it was.
    """
    built = [build(wanted.model, variant) for variant in wanted.variants]
    [version] = {variant.pop("vllm") for variant in built}
    golden = {"vllm": version, "block_size": 16, "counted": COUNTED, "variants": built}
    (GOLDENS / f"{wanted.model}.json").write_text(rendered(golden) + "\n")


def build(model: str, variant: Variant) -> dict[str, Any]:
    """Return what vLLM builds for one variant of a model.

    Raises:
        BuildError: it doesn't.
    """
    print(f" {variant.label}", end="", flush=True)
    command = [sys.executable, str(META_MODEL), str(MODELS / f"{model}.json")]
    command += ["--tp", str(variant.tensor_parallel), "--kv-cache-dtype", variant.kv_cache_dtype]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"{variant.label}: {' | '.join(done.stderr.splitlines()[-3:])}")
    built: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return built


def rendered(value: Any, indent: str = "") -> str:
    """Return JSON in which a tensor or a layer has one line, so that a diff shows what changed.

    >>> print(rendered({"a": [1, 2]}))
    {"a": [1, 2]}
    """
    line = json.dumps(value)
    if len(indent) + len(line) <= LINE_LENGTH or not isinstance(value, dict | list):
        return line
    inner = indent + "  "
    if isinstance(value, dict):
        items = [f"{json.dumps(key)}: {rendered(item, inner)}" for key, item in value.items()]
        opening, closing = "{}"
    else:
        items = [rendered(item, inner) for item in value]
        opening, closing = "[]"
    body = ",\n".join(inner + item for item in items)
    return f"{opening}\n{body}\n{indent}{closing}"


if __name__ == "__main__":
    sys.exit(main())
