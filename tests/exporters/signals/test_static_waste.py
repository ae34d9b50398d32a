"""Hand-computed: three requests of 52, 72 and 60 tokens in a model of at most 512."""

from dataclasses import replace

from vramscope.exporters.signals.kv_samples import StaticWasteSample
from vramscope.exporters.signals.static_waste import static_waste

NOW = StaticWasteSample(
    tokens=184,
    reserved={"max_model_len": 3 * 512, "power_of_two": 64 + 128 + 64},
    held_token_s=3000.0,
    oracle_token_s=4000.0,
)


def test_waste_is_what_is_reserved_and_holds_no_token() -> None:
    assert static_waste(NOW) == {
        "max_model_len": 1 - 184 / 1536,
        "power_of_two": 1 - 184 / 256,
        "oracle": 0.25,
    }


def test_nothing_reserved_has_no_waste() -> None:
    idle = StaticWasteSample(0, {"max_model_len": 0, "power_of_two": 0}, 0.0, 0.0)
    assert set(static_waste(idle).values()) == {None}


def test_rounding_makes_no_negative_waste() -> None:
    assert static_waste(replace(NOW, held_token_s=4000.0000001))["oracle"] == 0.0
