"""The examples in the formulas' docstrings are what the formulas say."""

import doctest
from types import ModuleType

import pytest

from vramscope.exporters.engine.probe import requests, slack
from vramscope.exporters.engine.probe import static_waste as static_waste_meter
from vramscope.exporters.gpu import link_rate
from vramscope.exporters.signals import fabric, kv, links, rates, static_waste

MODULES = (
    fabric,
    kv,
    link_rate,
    links,
    rates,
    requests,
    slack,
    static_waste,
    static_waste_meter,
)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_examples_hold(module: ModuleType) -> None:
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0
