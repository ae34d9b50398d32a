"""The source on the host's own bindings, where it has them, over the synthetic libdcgm."""

import os
import subprocess
import sys
from pathlib import Path

from vramscope.exporters.gpu.dcgm_bindings import FOLDERS, VARIABLE

SOURCE = Path(__file__).parents[1] / "synthetic" / "dcgm.c"
NAMED = os.environ.get(VARIABLE)
PLACES = [Path(NAMED)] if NAMED else FOLDERS
BINDINGS = next((folder for folder in PLACES if (folder / "pydcgm.py").is_file()), None)
PROGRAM = """
import os, pathlib
from vramscope.exporters.errors import SourceUnavailableError
from vramscope.exporters.gpu.dcgm import DcgmSource
def scenario(number, text):
    file = pathlib.Path(os.environ["FOLDER"], str(number))
    file.write_text(text)
    os.environ["SYNTHETIC_DCGM"] = str(file)
scenario(0, "gpus=2\\n")
source = DcgmSource()
assert len(source.read().samples) == 2
scenario(1, "gpus=8\\n1:252=not_supported\\nxids=0:79,0:79\\n")
reading = source.read()
assert len(reading.samples) == 8, reading
assert "used" not in reading.samples[1].memory_bytes
assert reading.samples[0].memory_bytes["used"] == 61000 << 20
scenario(2, "gpus=8\\nxids=0:79,0:79,3:13\\n")
assert {x for _, x in source.read().xids} >= {13}
scenario(3, "gpus=8\\ndead=1\\n")
try:
    source.read()
except SourceUnavailableError:
    scenario(4, "gpus=8\\nrestarts=1\\n")
    print(len(source.read().samples))
source.close()
"""

if BINDINGS is not None:

    def test_source_reads_through_the_real_bindings_past_a_dead_engine(tmp_path: Path) -> None:
        for name in ("libdcgm.so.3", "libdcgm.so.4"):
            command = ["gcc", "-shared", "-fPIC", str(SOURCE), "-o", str(tmp_path / name)]
            subprocess.run(command, check=True)
        folders = {"LD_LIBRARY_PATH": str(tmp_path), VARIABLE: str(BINDINGS)}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, **folders, "FOLDER": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout) == (0, "8\n"), done.stderr
