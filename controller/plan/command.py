"""``vramscope plan``: what fits before anything runs."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from vramscope.controller.plan.document import document
from vramscope.controller.plan.measured import Comparison, compare, find_engine
from vramscope.controller.plan.picture import picture
from vramscope.controller.plan.plan import make_plan
from vramscope.controller.plan.target import (
    Target,
    TargetError,
    found_target,
    kind_target,
    size_target,
)
from vramscope.controller.plan.text import text
from vramscope.exporters.engine.rundir import run_dir
from vramscope.exporters.errors import SourceUnavailableError
from vramscope.exporters.pictures.file import picture_file, save, want_library
from vramscope.exporters.pictures.style import add_color_option, style_of
from vramscope.exporters.signals.memory.budget import EngineShape, budget
from vramscope.exporters.signals.memory.model import Model
from vramscope.exporters.signals.memory.read_model import read_config_file, read_model
from vramscope.exporters.signals.memory.weights import Parallelism

__all__ = ["main"]

DESCRIPTION = """\
Says what of a GPU's memory a model would take, how many tokens and requests fit, and which
settings suit it. Offline: it reads the model's config.json and no weights. Numbers from shapes are
exact as vLLM 0.32 makes them; estimates say so, with their range.
"""
EPILOG = """\
examples:
  vramscope plan ./Llama-3-8B --gpu h100-sxm             a folder, or its config.json
  vramscope plan ./DeepSeek-V3 --gpu h200-sxm --tp 8     a GPU's share of eight
  vramscope plan ./model --gpu-memory 24GiB --lengths 512,4096
  vramscope plan ./model --adapters 40 --lora-rank 32    with LoRA
  vramscope plan ./model --engine chat-0                 corrected by a live engine
  vramscope plan ./model -o plan.svg; vramscope plan ./model --json | jq .budget

exit codes: 0 it fits, 1 it does not or can't be planned, 2 misused
"""
LENGTHS = (1024, 4096, 16384)
DTYPES = {"bfloat16": 16, "float16": 16, "float32": 32}
KV_DTYPES = {"auto": None, "bfloat16": 2, "float16": 2, "fp8": 1, "fp8_e4m3": 1, "fp8_e5m2": 1}


def main(argv: Sequence[str]) -> int:
    """Run the command; return its exit code.

    Raises:
        VramscopeError: the model, the GPU or the engine can't be planned with; says why.
    """
    options = _parser().parse_args(argv)
    if options.output is not None:
        want_library(options.output, "plan")
    path = Path(options.model)
    model, quantization = read_model(read_config_file(path), str(path))
    model = replace(model, element_bits=_loaded_bits(options.dtype, model))
    target = _target(options.gpu, options.gpu_memory)
    shape = _shape(options)
    comparison: Comparison | None = None
    if options.engine is not None:
        ranks = options.tp * options.pp
        sample = find_engine(options.run_dir or run_dir(), options.engine, ranks)
        comparison = compare(budget(model, quantization, shape, target.total_bytes), sample)
    plan = make_plan(
        model,
        quantization,
        target,
        shape,
        _lengths(options.lengths, model),
        options.adapters,
        None if comparison is None else comparison.measured,
    )
    if options.output is not None:
        save(picture(plan), options.output)
    if options.json:
        sys.stdout.write(json.dumps(document(plan, comparison), indent=2) + "\n")
    elif options.output is None:
        stdout = sys.stdout
        style = style_of(options.color, os.environ, stdout.isatty(), stdout.encoding)
        stdout.write(text(plan, comparison, style))
    return 0 if plan.budget.fits else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="vramscope plan",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", metavar="MODEL", help="a model's folder, or its config.json")
    gpu = parser.add_mutually_exclusive_group()
    gpu.add_argument(
        "--gpu",
        metavar="KIND",
        help="h100-sxm, l40s, ... (docs/gpu-kinds.md), or the index of a GPU of this host "
        "(default: this host's smallest)",
    )
    gpu.add_argument("--gpu-memory", metavar="SIZE", help="a GPU's memory, such as 80GiB")
    for name, what in (
        ("tp", "ranks that share each layer"),
        ("pp", "stages that share the layers"),
        ("dp", "replicas"),
    ):
        parser.add_argument(
            f"--{name}", metavar="N", type=_count, default=1, help=f"{what} (default 1)"
        )
    parser.add_argument(
        "--lengths",
        metavar="N,N",
        type=_count_list,
        help="lengths of requests, prompt and answer (default 1024,4096,16384)",
    )
    parser.add_argument(
        "--gpu-memory-utilization", metavar="SHARE", type=_share, default=0.92, help="default 0.92"
    )
    parser.add_argument("--block-size", metavar="N", type=_count, default=16, help="default 16")
    parser.add_argument("--max-num-seqs", metavar="N", type=_count, default=256, help="default 256")
    parser.add_argument(
        "--max-num-batched-tokens", metavar="N", type=_count, default=8192, help="default 8192"
    )
    parser.add_argument(
        "--dtype",
        choices=("auto", *DTYPES),
        default="auto",
        help="as vLLM loads it (default auto: the config's, and 16 bits for float32)",
    )
    parser.add_argument(
        "--kv-cache-dtype", choices=tuple(KV_DTYPES), default="auto", help="default auto"
    )
    parser.add_argument("--enforce-eager", action="store_true", help="no CUDA graphs")
    parser.add_argument(
        "--adapters", metavar="N", type=_count, default=0, help="LoRA adapters that are served"
    )
    parser.add_argument("--max-loras", metavar="N", type=_count, default=0, help="adapter slots")
    parser.add_argument(
        "--lora-rank", metavar="N", type=_count, default=16, help="of the adapters (default 16)"
    )
    parser.add_argument(
        "--engine", metavar="ID", help="a live engine of this host with this model, to correct by"
    )
    parser.add_argument(
        "--run-dir",
        metavar="FOLDER",
        type=Path,
        help="where engines write their records (default: as vramscope export)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=picture_file,
        help="write a picture, .svg or .png, and print nothing",
    )
    add_color_option(parser)
    return parser


def _target(gpu: str | None, memory: str | None) -> Target:
    if memory is not None:
        return size_target(memory)
    if gpu is not None and not gpu.isdigit():
        return kind_target(gpu)
    from vramscope.exporters.gpu.nvml import NvmlSource  # which needs a package of an extra

    try:
        source = NvmlSource()
    except SourceUnavailableError as error:
        raise TargetError(f"{error}; or plan for a kind: --gpu KIND, such as h100-sxm") from error
    try:
        return found_target(source.read().samples, None if gpu is None else int(gpu))
    finally:
        source.close()


def _shape(options: argparse.Namespace) -> EngineShape:
    shape = EngineShape(
        parallelism=Parallelism(options.tp, options.pp, options.dp),
        gpu_memory_utilization=options.gpu_memory_utilization,
        block_size=options.block_size,
        max_num_seqs=options.max_num_seqs,
        max_num_batched_tokens=options.max_num_batched_tokens,
        max_loras=options.max_loras,
        max_lora_rank=options.lora_rank,
        kv_element_bytes=KV_DTYPES[options.kv_cache_dtype],
        enforce_eager=options.enforce_eager,
    )
    return replace(shape, max_loras=1) if options.adapters and not options.max_loras else shape


def _loaded_bits(dtype: str, model: Model) -> int:
    return min(16, model.checkpoint_bits) if dtype == "auto" else DTYPES[dtype]


def _lengths(given: Sequence[int] | None, model: Model) -> list[int]:
    """Return lengths that the model can have, ascending."""
    wanted = LENGTHS if given is None else given
    return sorted({min(length, model.max_length) for length in wanted})


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 10**9:
        raise argparse.ArgumentTypeError(f"{text!r}: want a whole number from 1 on")
    return int(text)


def _count_list(text: str) -> list[int]:
    return [_count(one.strip()) for one in text.split(",")]


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise argparse.ArgumentTypeError(f"{text!r}: want a share over 0 to 1, e.g. 0.92")
    return share
