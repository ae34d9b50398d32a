"""vLLM's releases on the package index, and the part of their sources that the probe depends on.

An sdist is some 40 MB. It is read as a stream, checked against the index's hash, and never run:
of it only Python files of a few folders are kept.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

__all__ = ["DriftError", "Sdist", "bring", "newest_of_each_minor", "published"]

DEFAULT_INDEX = "https://pypi.org/simple"
INDEX_JSON = "application/vnd.pypi.simple.v1+json"
TIMEOUT_S = 60.0

FIRST_MINOR = (0, 13)
"""The oldest release that the probe supports."""
KEPT = ("vllm/config/", "vllm/distributed/kv_transfer/", "vllm/lora/", "vllm/utils/", "vllm/v1/")
STAMP = "kept"
MOST_FILE_BYTES = 4 << 20
MOST_KEPT_BYTES = 128 << 20

_NAME = re.compile(r"vllm-(\d+)\.(\d+)\.(\d+)(?:\.post(\d+))?\.tar\.gz")


class DriftError(Exception):
    """What is wrong and what to do, for a person."""


class Sdist(NamedTuple):
    """One release's sources on the index."""

    version: str
    url: str
    sha256: str


def published() -> list[Sdist]:
    """Return vLLM's sdists as pip's index lists them, older releases too.

    Raises:
        DriftError: the index can't be reached, or lists no files as JSON (PEP 691).
    """
    url = f"{index_url().rstrip('/')}/vllm/"
    request = urllib.request.Request(url, headers={"Accept": INDEX_JSON})  # noqa: S310 (pip's own)
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:  # noqa: S310
            files = json.load(answer)["files"]
    except (OSError, ValueError, KeyError) as error:
        raise DriftError(f"{url}: {error}: want an index with the JSON API of PEP 691") from error
    found = list(sdists(files, url))
    if not found:
        raise DriftError(f"{url}: lists no sources of vLLM")
    return found


def index_url() -> str:
    """Return the index that pip is configured to use."""
    if named := os.environ.get("PIP_INDEX_URL"):
        return named
    command = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or DEFAULT_INDEX


def sdists(files: Iterable[Mapping[str, Any]], page_url: str) -> Iterator[Sdist]:
    """Yield the sdists of final releases that were not withdrawn."""
    for file in files:
        if _NAME.fullmatch(file["filename"]) and not file.get("yanked"):
            version = file["filename"].removeprefix("vllm-").removesuffix(".tar.gz")
            url = urllib.parse.urljoin(page_url, file["url"])
            yield Sdist(version, url, file["hashes"].get("sha256", ""))


def newest_of_each_minor(found: Iterable[Sdist]) -> list[Sdist]:
    """Return the last patch of each supported minor release, oldest first."""
    newest: dict[tuple[int, ...], Sdist] = {}
    for sdist in sorted(found, key=lambda sdist: _order(sdist.version)):
        minor = _order(sdist.version)[:2]
        if minor >= FIRST_MINOR:
            newest[minor] = sdist
    return list(newest.values())


def bring(sdist: Sdist, folder: Path) -> Path:
    """Return the folder of a release's sources, downloaded unless it is there already.

    Args:
        sdist: which.
        folder: of all releases.

    Raises:
        DriftError: it can't be had whole, or is not what the index says.
    """
    stamp = "\n".join((sdist.sha256, *KEPT))
    target = folder / sdist.version
    if target.is_dir():
        if (target / STAMP).read_text() == stamp:
            return target
        shutil.rmtree(target)
    partial = folder / f".{sdist.version}.{os.getpid()}"
    partial.mkdir(parents=True)
    try:
        with urllib.request.urlopen(sdist.url, timeout=TIMEOUT_S) as answer:  # noqa: S310 (pip's)
            hashing = _Hashing(answer)
            _unpack(hashing, partial, f"vllm-{sdist.version}/")
        (partial / STAMP).write_text(stamp)
        if hashing.sha256.hexdigest() != sdist.sha256:
            raise DriftError(f"{sdist.url}: its SHA-256 is not the {sdist.sha256} of the index")
        partial.rename(target)
    except (OSError, tarfile.TarError, EOFError) as error:
        raise DriftError(f"{sdist.url}: {error}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return target


class _Hashing:
    """Hashes what is read through it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.sha256 = hashlib.sha256()

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self.sha256.update(data)
        return data


def _unpack(stream: _Hashing, folder: Path, prefix: str) -> None:
    """Write the kept files below ``folder``, each under a path of our own making."""
    left = MOST_KEPT_BYTES
    with tarfile.open(fileobj=stream, mode="r|gz") as archive:  # type: ignore[call-overload]
        for member in archive:
            name = member.name.removeprefix(prefix)
            if not member.isfile() or not name.startswith(KEPT) or not name.endswith(".py"):
                continue
            left -= member.size
            if ".." in Path(name).parts or member.size > MOST_FILE_BYTES or left < 0:
                raise DriftError(f"{member.name}: no source file of vLLM: {member.size} bytes")
            content = archive.extractfile(member)
            if content is not None:
                file = folder / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content.read())
    while stream.read(1 << 20):
        pass  # what follows the archive is hashed too


def _order(version: str) -> tuple[int, ...]:
    """Return what versions sort by.

    >>> _order("0.9.0.post1") < _order("0.10.0")
    True
    """
    matched = _NAME.fullmatch(f"vllm-{version}.tar.gz")
    return tuple(int(part or 0) for part in matched.groups()) if matched else ()
