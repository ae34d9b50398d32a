"""A process that serves ten thousand series as the exporter does: ``exporter_server.py [CONFIG]``.

It refreshes once a second in a thread, prints its URL, and ends when its input is closed.
"""

import asyncio
import random
import sys
from pathlib import Path

from ten_thousand import fill

from vramscope.exporters.exposition.endpoint import SWITCH_INTERVAL_S, serve
from vramscope.exporters.exposition.families import Families
from vramscope.exporters.exposition.rendered import Rendered, Renderer

PERIOD_S = 1.0


async def main(web_config_file: Path | None) -> None:
    """Serve until the input is closed."""
    renderer = Renderer()
    chance = random.Random(1)  # noqa: S311 (a bench)

    def refresh() -> Rendered:
        families = Families()
        fill(families, chance, still=0.5)
        return renderer.render(families)

    page = refresh()

    async def metrics() -> Rendered:
        return page

    ended = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    async with serve(
        {"/metrics": metrics}, host="127.0.0.1", port=0, web_config_file=web_config_file
    ) as endpoint:
        sys.stdout.write(f"{endpoint.url}\n")
        sys.stdout.flush()
        while not ended.done():
            page = await asyncio.to_thread(refresh)
            await asyncio.wait({ended}, timeout=PERIOD_S)


if __name__ == "__main__":
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    asyncio.run(main(Path(sys.argv[1]) if len(sys.argv) > 1 else None))
