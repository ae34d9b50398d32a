"""All dashboards, as the files that are committed."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vramscope.dashboards.controller import controller
from vramscope.dashboards.engine import engine
from vramscope.dashboards.fleet import fleet
from vramscope.dashboards.links import links
from vramscope.dashboards.lora import lora
from vramscope.dashboards.vram import vram

__all__ = ["FOLDER", "dashboards", "files"]

FOLDER = Path(__file__).parent / "json"


def dashboards() -> Iterator[dict[str, Any]]:
    """Yield each dashboard's JSON."""
    for make in (fleet, vram, engine, lora, links, controller):
        yield make()


def files() -> dict[str, str]:
    """Return the text of each file by its name."""
    return {
        f"{one['uid']}.json": json.dumps(one, indent=2, sort_keys=True) + "\n"
        for one in dashboards()
    }
