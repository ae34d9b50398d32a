"""Where records live, and who may read them."""

import contextlib
import grp
import os
import stat
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from vramscope.exporters.engine import dump_file, lock
from vramscope.exporters.engine.record import SUFFIX

__all__ = ["create_file", "open_folder", "remove_dead_records", "run_dir"]

VARIABLE = "VRAMSCOPE_RUN_DIR"
FOLDER_MODE = 0o750
FILE_MODE = 0o640
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


def create_file(folder_fd: int, name: str, group: str | None) -> int:
    """Create a file that its owner writes and a group reads, whatever the umask.

    Args:
        folder_fd: as ``open_folder`` returns it.
        name: of the file; what a killed process of this one's pid left under it goes.
        group: name of the group; None leaves the process's own.

    Returns:
        A file descriptor for reading and writing; the caller closes it.

    Raises:
        OSError, KeyError: it can't be made, or there is no such group.
    """
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder_fd)
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(name, flags, FILE_MODE, dir_fd=folder_fd)
    try:
        os.fchmod(fd, FILE_MODE)
        if group:
            os.fchown(fd, -1, grp.getgrnam(group).gr_gid)
    except BaseException:
        os.close(fd)
        os.unlink(name, dir_fd=folder_fd)
        raise
    return fd


def remove_dead_records(folder_fd: int) -> None:
    """Remove the records whose process is gone and could not, and the dumps without a record.

    A killed process leaves its record, and vLLM kills its EngineCore at the end of most
    shutdowns. Readers know such a record by its lock; this keeps them from piling up.

    Args:
        folder_fd: as ``open_folder`` returns it.
    """
    left = set(os.listdir(folder_fd))
    for entry in [name for name in left if name.endswith(SUFFIX)]:
        if f".{os.getpid()}." in entry:
            continue  # this process's own, and closing it would drop its lock
        try:
            fd = os.open(entry, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder_fd)
        except OSError:
            continue  # gone meanwhile, or not ours to read: then not ours to remove
        try:
            if not lock.is_held(fd):
                _unlink(entry, folder_fd)
                left.discard(entry)
        finally:
            os.close(fd)
    for entry in left:
        dump = entry.removeprefix(".").removesuffix(".new")
        if (
            dump.endswith(dump_file.SUFFIX)
            and dump.removesuffix(dump_file.SUFFIX) + SUFFIX not in left
        ):
            _unlink(entry, folder_fd)


def _unlink(name: str, folder_fd: int) -> None:
    with contextlib.suppress(FileNotFoundError):  # an engine that starts at once does the same
        os.unlink(name, dir_fd=folder_fd)
