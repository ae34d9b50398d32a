"""The one line of an engine's log that says why it died."""

import re
from pathlib import Path

__all__ = ["telling_line"]

TAIL_BYTES = 64 * 1024
LINE_CHARACTERS = 300

# vLLM's prefixes: "(EngineCore pid=12) ERROR 01-31 12:00:00 [core.py:100] ".
PREFIX = re.compile(r"^(\([^)]*\)\s*)?((DEBUG|INFO|WARNING|ERROR)\s[\d\s:.-]+(\[[^\]]*\]\s*)?)?")
TERMINAL_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
ERROR = re.compile(
    r"^(\w+\.)*\w*(Error|Exception|Interrupt|Exit)\b.*|.*\berror: .*|.*No module named.*"
)
# What parents say of their children: the reason stands in the child's own lines, above.
ECHO = re.compile(r"See root cause above|Engine core initialization failed|leaked \w+ objects")
# pydantic says what is wrong on the line below.
REASON_BELOW = re.compile(r"\d+ validation errors? for ")


def telling_line(log_path: Path) -> str:
    """Return the last line that names an error and its cause, else the last line at all.

    Empty when the log is empty or can't be read.
    """
    try:
        with log_path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    lines = [stripped for line in text.splitlines() if (stripped := _strip(line))]
    errors = [number for number, line in enumerate(lines) if ERROR.match(line)]
    causes = [number for number in errors if not ECHO.search(lines[number])]
    telling = (causes or errors or range(len(lines)))[-1:]
    said = [
        " ".join(lines[number : number + 1 + bool(REASON_BELOW.search(lines[number]))])
        for number in telling
    ]
    return "".join(said)[:LINE_CHARACTERS]


def _strip(line: str) -> str:
    plain = TERMINAL_COLOURS.sub("", line).strip()
    plain = "".join(character for character in plain if character.isprintable())
    return PREFIX.sub("", plain, count=1).strip()
