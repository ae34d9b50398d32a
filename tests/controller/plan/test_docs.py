from pathlib import Path

from vramscope.exporters.signals.memory.families import FAMILIES

PAGE = Path(__file__).parents[3] / "docs" / "plan.md"


def test_page_names_each_architecture_that_is_known() -> None:
    text = PAGE.read_text()
    assert [name for name in FAMILIES if name not in text] == []
