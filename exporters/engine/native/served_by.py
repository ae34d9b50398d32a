"""Whether an engine with a record is the one that answers on a port of this host."""

import os
from collections.abc import Iterator
from pathlib import Path

__all__ = ["listening_inodes", "serves"]

LISTEN = "0A"
MOST_ANCESTORS = 8
"""EngineCore, its API server, the command that started both; then shells and supervisors."""


def serves(pid: int, inodes: set[str], proc: Path = Path("/proc")) -> bool:
    """Return whether a process or one above it holds one of these sockets.

    An EngineCore's parent is the API server, or what started both and gave the servers their
    socket. Processes of other users hold sockets that we may not see: then False.

    Args:
        pid: of an EngineCore.
        inodes: as ``listening_inodes`` returns them.
        proc: the file system of processes.
    """
    links = {f"socket:[{inode}]" for inode in inodes}
    return any(link in links for ancestor in _up(pid, proc) for link in _files(ancestor, proc))


def listening_inodes(port: int, proc: Path = Path("/proc")) -> set[str]:
    """Return the inodes of the TCP sockets that listen on a port, in our network namespace."""
    found = set()
    for table in ("tcp", "tcp6"):
        try:
            lines = (proc / "net" / table).read_text().splitlines()[1:]
        except OSError:
            continue  # no IPv6 here, or no /proc of this kind
        for line in lines:
            columns = line.split()
            if columns[3] == LISTEN and int(columns[1].rpartition(":")[2], 16) == port:
                found.add(columns[9])
    return found


def _up(pid: int, proc: Path) -> Iterator[int]:
    for _ in range(MOST_ANCESTORS):
        if pid <= 1:
            return
        yield pid
        try:
            # After the name in brackets, which may hold anything: state, then the parent.
            pid = int((proc / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            return  # it has ended


def _files(pid: int, proc: Path) -> Iterator[str]:
    folder = proc / str(pid) / "fd"
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    yield str(Path(entry.path).readlink())
                except OSError:
                    continue  # closed meanwhile
    except OSError:
        return  # another user's, or ended
