"""Where records live, and who may read them."""

import os
import stat
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from vramscope.exporters.engine import lock
from vramscope.exporters.engine.record import SUFFIX

__all__ = ["open_folder", "remove_dead_records", "run_dir"]

VARIABLE = "VRAMSCOPE_RUN_DIR"
FOLDER_MODE = 0o750
SYSTEM_FOLDER = Path("/run/vramscope")


def _can_write(folder: Path) -> bool:
    return os.access(folder if folder.exists() else folder.parent, os.W_OK)


def run_dir(
    environment: Mapping[str, str] = os.environ, can_write: Callable[[Path], bool] = _can_write
) -> Path:
    """Return the folder of this host's records; it may not exist yet.

    ``$VRAMSCOPE_RUN_DIR``; else ``/run/vramscope`` where this user can write it; else
    ``$XDG_RUNTIME_DIR/vramscope``; else a folder of this user's in the temp dir.
    """
    if named := environment.get(VARIABLE):
        return Path(named)
    if can_write(SYSTEM_FOLDER):
        return SYSTEM_FOLDER
    if runtime := environment.get("XDG_RUNTIME_DIR"):
        return Path(runtime) / "vramscope"
    return Path(tempfile.gettempdir()) / f"vramscope-{os.getuid()}"


def open_folder(path: Path) -> int:
    """Make the folder if need be and open it, following no link at its end.

    Returns:
        A directory file descriptor; the caller closes it.

    Raises:
        OSError: it can't be made, is a link, or anyone may write in it.
    """
    path.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    if os.fstat(fd).st_mode & stat.S_IWOTH:
        os.close(fd)
        raise PermissionError(f"{path} is writable by everyone: want mode 0750")
    return fd


def remove_dead_records(folder_fd: int) -> None:
    """Remove the records whose process is gone and could not.

    A killed process leaves its record, and vLLM kills its EngineCore at the end of most
    shutdowns. Readers know such a record by its lock; this keeps them from piling up.

    Args:
        folder_fd: as ``open_folder`` returns it.
    """
    for entry in os.listdir(folder_fd):
        if not entry.endswith(SUFFIX) or f".{os.getpid()}." in entry:
            continue  # not a record; or this process's own, and closing it would drop its lock
        try:
            fd = os.open(entry, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder_fd)
        except OSError:
            continue  # gone meanwhile, or not ours to read: then not ours to remove
        try:
            if not lock.is_held(fd):
                os.unlink(entry, dir_fd=folder_fd)
        finally:
            os.close(fd)
