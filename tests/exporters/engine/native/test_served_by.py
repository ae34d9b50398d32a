"""Who answers on a port, by real sockets and processes."""

import os
import socket
import subprocess
import sys
from pathlib import Path

from vramscope.exporters.engine.native.served_by import listening_inodes, serves

# Listens in the parent and reports the pid of a child that closed the socket: an EngineCore.
PARENT = """
import os, socket, sys
listener = socket.create_server(("127.0.0.1", 0))
child = os.fork()
if child == 0:
    listener.close()
    sys.stdin.read()
    os._exit(0)
print(listener.getsockname()[1], child, flush=True)
sys.stdin.read()
os.wait()
"""


def test_the_engine_below_the_api_server_is_found() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        port, child = map(int, process.stdout.readline().split())
        inodes = listening_inodes(port)
        assert len(inodes) == 1
        assert serves(child, inodes)
        assert not serves(os.getpid(), inodes), "only upwards"
    finally:
        process.communicate("", timeout=20)


def test_port_without_listener_has_no_inode() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert listening_inodes(bound.getsockname()[1]) == set()


def test_process_that_is_gone_serves_nothing(tmp_path: Path) -> None:
    assert not serves(12345, {"1"}, proc=tmp_path)
    assert listening_inodes(80, proc=tmp_path) == set()
