"""Says what an exporter would of a run directory: a JSON list of lines for each line it is given.

A process of its own: one that opened and closed the record of its own process would drop the
writer's lock.
"""

import json
import sys
from pathlib import Path

from vramscope.exporters.engine.host import HostRecords
from vramscope.exporters.exporter import Exporter

TOLD = ("vramscope_source_up", "vramscope_probe_capability", "vramscope_engine_state")

for _ in sys.stdin:
    records = HostRecords(Path(sys.argv[1]))
    exporter = Exporter(records.read)
    exporter.refresh()
    errors = [f"{one.source}: {one.error}" for one in records.read() if one.error]
    records.close()
    page = exporter.page.page().decode().splitlines()
    told = [line for line in page if line.startswith(TOLD)]
    sys.stdout.write(json.dumps({"page": told, "errors": errors}) + "\n")
    sys.stdout.flush()
