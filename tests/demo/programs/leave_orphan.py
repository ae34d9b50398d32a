"""Starts a grandchild in a session of its own whose parent then ends; says what was found."""

import asyncio
import os
import subprocess
import sys

from vramscope.demo.processes import adopt_orphans, descendants, end_descendants

PARENT = """
import subprocess, sys
orphan = subprocess.Popen(
    [sys.executable, "-c", "print('up', flush=True); import time; time.sleep(600)"],
    stdout=subprocess.PIPE, start_new_session=True,
)
orphan.stdout.readline()
print(orphan.pid)
"""

adopt_orphans()
done = subprocess.run([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True, check=True)
orphan = int(done.stdout)
found = descendants(os.getpid())
lines = asyncio.run(end_descendants(os.getpid()))
sys.stdout.write(f"{list(found) == [orphan]} {len(lines)} {descendants(os.getpid())}\n")
