"""Liveness by lock: the writer holds one while it lives, since pids differ between containers."""

import fcntl
import struct

__all__ = ["holder", "is_held"]

# struct flock on 64-bit Linux: type, whence, start, length, pid.
_FLOCK = struct.Struct("hhqqi4x")


def is_held(fd: int) -> bool:
    """Whether a live process holds the lock on an open record.

    Asks without taking it, as an open-file-description owner: so the answer is right within
    the writer's own process too (where closing ``fd`` would drop the lock: POSIX).
    """
    return _ask(fd)[0] != fcntl.F_UNLCK


def holder(fd: int) -> int | None:
    """Return the pid of the lock's holder as this process would see it.

    The kernel translates it between pid namespaces, which a pid in the file could not be.

    Returns:
        None when nothing holds it, or its holder can't be seen from this pid namespace.
    """
    kind, _, _, _, pid = _ask(fd)
    return pid if kind != fcntl.F_UNLCK and pid > 0 else None


def _ask(fd: int) -> tuple[int, ...]:
    # A read lock conflicts with the writer's, and may be asked for on a file opened read-only.
    asked = _FLOCK.pack(fcntl.F_RDLCK, 0, 0, 0, 0)
    answer: tuple[int, ...] = _FLOCK.unpack(fcntl.fcntl(fd, fcntl.F_OFD_GETLK, asked))
    return answer
