"""Where records live, and who may read them."""

import os
import stat
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

__all__ = ["open_folder", "run_dir"]

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
