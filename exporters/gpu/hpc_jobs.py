"""Which batch jobs hold which GPUs, by a folder that the scheduler's prolog writes.

The folder is dcgm-exporter's: a file named by GPU index, one job id a line; the epilog empties
or removes it.
"""

from pathlib import Path

from vramscope.exporters.errors import SourceUnavailableError

__all__ = ["read_hpc_jobs"]

MOST_BYTES = 64 * 1024


def read_hpc_jobs(folder: Path) -> dict[int, tuple[str, ...]]:
    """Return job ids by GPU index; other files, and files without a job, are passed over.

    Raises:
        SourceUnavailableError: the folder or a file can't be read.
    """
    jobs: dict[int, tuple[str, ...]] = {}
    try:
        for file in sorted(folder.iterdir()):
            if file.name.isascii() and file.name.isdigit() and file.is_file():
                ids = _job_ids(file)
                if ids:
                    jobs[int(file.name)] = ids
    except OSError as error:
        where = error.filename or folder
        raise SourceUnavailableError(f"{where}: {error.strerror}") from error
    return jobs


def _job_ids(file: Path) -> tuple[str, ...]:
    try:
        with file.open("rb") as opened:
            text = opened.read(MOST_BYTES).decode(errors="replace")
    except FileNotFoundError:
        return ()  # the epilog removed it since the folder was listed
    return tuple(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))
