"""Liveness by lock: the writer holds one while it lives, since pids differ between containers."""

import fcntl
import struct

__all__ = ["is_held"]

# struct flock on 64-bit Linux: type, whence, start, length, pid.
_FLOCK = struct.Struct("hhqqi4x")


def is_held(fd: int) -> bool:
    """Whether a live process holds the lock on an open record.

    Asks without taking it, as an open-file-description owner: so the answer is right within
    the writer's own process too (where closing ``fd`` would drop the lock: POSIX).
    """
    # A read lock conflicts with the writer's, and may be asked for on a file opened read-only.
    asked = _FLOCK.pack(fcntl.F_RDLCK, 0, 0, 0, 0)
    answer = fcntl.fcntl(fd, fcntl.F_OFD_GETLK, asked)
    return bool(_FLOCK.unpack(answer)[0] != fcntl.F_UNLCK)
