"""Writes the recording rules as Prometheus reads them (``python -m`` this module prints them)."""

import json
import sys

from vramscope.exporters.catalog.recording import RECORDED

__all__ = ["FILE", "recording_rules"]

FILE = "recording.rules.yaml"
INTERVAL = "15s"
"""Between evaluations; a rate over 5 minutes changes no faster than that."""
HEAD = """\
# Generated from vramscope/exporters/catalog/recording.py by `make docs`. Do not edit.
# Prometheus: rule_files: [recording.rules.yaml]
groups:
  - name: vramscope-recording
    interval: {interval}
    rules:
"""


def recording_rules() -> str:
    """Return the file: one group, in the catalog's order."""
    lines = [HEAD.format(interval=INTERVAL).rstrip()]
    for series in RECORDED:
        lines += [
            f"      # {series.help}",
            f"      - record: {series.name}",
            f"        expr: {json.dumps(series.expression)}",  # which is YAML too
        ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(recording_rules())
