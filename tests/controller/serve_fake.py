"""``vramscope serve`` with fake engines, as a program: for tests of signals and exit codes."""

import sys
from pathlib import Path

from vramscope.controller.config import EngineConfig
from vramscope.controller.serve import main
from vramscope.exporters.errors import VramscopeError


def command(engine: EngineConfig, port: int) -> list[str]:
    fake = Path(__file__).with_name("fake_engine.py")
    return [sys.executable, str(fake), "--port", str(port), *engine.args]


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:], command))
    except VramscopeError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(1)
