"""Locks on a record: whether its writer lives, and whether a reader asks it for a page table.

Locks and not pids or request files: pids differ between containers, and a file can be forged,
left behind by a killed reader, or not be made at all where the folder is mounted read-only. A
lock is the kernel's own word: who can read the record may take a read lock, and it ends with
its process.

The writer's lock covers the record. A reader that asks locks one byte far beyond its end, which
no data is ever written to.
"""

import fcntl
import struct

__all__ = ["ask", "holder", "is_asked", "is_held", "take"]

# struct flock on 64-bit Linux: type, whence, start, length, pid.
_FLOCK = struct.Struct("hhqqi4x")
RECORD = (0, 1 << 40)
"""Offset and length, in bytes, of what the writer locks: more than any record has."""
REQUEST = (1 << 40, 1)
"""Offset and length of what a reader locks to ask."""


def take(fd: int) -> None:
    """Lock a record as its writer, for as long as this process lives and keeps it open.

    Raises:
        OSError: another process has it.
    """
    start, length = RECORD
    fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, length, start)


def is_held(fd: int) -> bool:
    """Whether a live process holds the lock on an open record.

    Asks without taking it, as an open-file-description owner: so the answer is right within
    the writer's own process too (where closing ``fd`` would drop the lock: POSIX).
    """
    return _test(fd, fcntl.F_RDLCK, RECORD)[0] != fcntl.F_UNLCK


def holder(fd: int) -> int | None:
    """Return the pid of the lock's holder as this process would see it.

    The kernel translates it between pid namespaces, which a pid in the file could not be.

    Returns:
        None when nothing holds it, or its holder can't be seen from this pid namespace.
    """
    kind, _, _, _, pid = _test(fd, fcntl.F_RDLCK, RECORD)
    return pid if kind != fcntl.F_UNLCK and pid > 0 else None


def ask(fd: int) -> None:
    """Ask the writer of an open record for its page table, until the file is closed.

    Any number of readers may ask at once.

    Raises:
        OSError: the file system has no such locks.
    """
    fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_RDLCK, 0, *REQUEST, 0))


def is_asked(fd: int) -> bool:
    """Whether a reader asks, as the writer sees it: one system call, under a microsecond."""
    return _test(fd, fcntl.F_WRLCK, REQUEST)[0] != fcntl.F_UNLCK


def _test(fd: int, kind: int, place: tuple[int, int]) -> tuple[int, ...]:
    """Return the lock that would keep one of this kind from being taken there."""
    # A read lock conflicts with the writer's, and may be asked for on a file opened read-only.
    asked = _FLOCK.pack(kind, 0, *place, 0)
    answer: tuple[int, ...] = _FLOCK.unpack(fcntl.fcntl(fd, fcntl.F_OFD_GETLK, asked))
    return answer
