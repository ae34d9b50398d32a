"""Looks the probe's hook points up in vLLM's releases: ``make drift``.

Writes tools/drift/found.json and docs/compatibility.md, which are committed; the tests read them
and download nothing. The exit code is 1 when a release lacks a capability that the one before it
has: then the probe wants work.
"""

import argparse
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from found import Found, lost, write
from hook_points import HOOK_POINTS
from lookup import missing
from page import PAGE, compatibility_page
from sdists import DriftError, Sdist, bring, newest_of_each_minor, published

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "build" / "vllm-sources"
DOWNLOADS = 4


def main() -> int:
    """Download, look up, write; return the exit code."""
    parser = argparse.ArgumentParser(prog="make drift", description=__doc__)
    parser.add_argument(
        "--sources", type=Path, default=SOURCES, help=f"where downloads are kept ({SOURCES})"
    )
    options = parser.parse_args()
    try:
        releases = newest_of_each_minor(published())
        trees = bring_all(releases, options.sources)
    except DriftError as error:
        sys.stderr.write(f"make drift: {error}\n")
        return 1
    found = Found(
        tuple(dict.fromkeys(point.key for point in HOOK_POINTS)),
        {
            sdist.version: missing(HOOK_POINTS, tree)
            for sdist, tree in zip(releases, trees, strict=True)
        },
    )
    write(found)
    PAGE.write_text(compatibility_page(found))
    sys.stdout.write(f"written: {PAGE.relative_to(ROOT)}\n")
    for capability in (losses := list(lost(found))):
        sys.stderr.write(f"lost: {capability}\n")
    return 1 if losses else 0


def bring_all(releases: list[Sdist], folder: Path) -> list[Path]:
    """Return the source trees of ``releases``, a line each as it comes."""
    started_s = time.monotonic()

    def one(sdist: Sdist) -> Path:
        tree = bring(sdist, folder)
        sys.stdout.write(f"vLLM {sdist.version} ({time.monotonic() - started_s:.0f} s)\n")
        sys.stdout.flush()
        return tree

    with ThreadPoolExecutor(DOWNLOADS) as pool:
        return list(pool.map(one, releases))


if __name__ == "__main__":
    sys.exit(main())
