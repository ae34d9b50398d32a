import doctest

from vramscope.exporters.gpu import host_place as module
from vramscope.exporters.gpu.host_place import HostPlace, host_place
from vramscope.exporters.signals.fabric import FabricPort


def port(prefix: str, state: str = "active") -> FabricPort:
    return FabricPort("mlx5_0", 1, 0.0, state=state, subnet_prefix=prefix)


def test_example_holds() -> None:
    assert doctest.testmod(module).failed == 0


def test_configured_wins_over_the_environment_and_the_fabric() -> None:
    environment = {"VRAMSCOPE_RACK": "r1", "VRAMSCOPE_ISLAND": "i1"}
    place = host_place("r2", "i2", [port("fe80000000000007")], environment)
    assert place == HostPlace("r2", "i2")


def test_environment_wins_over_the_fabric() -> None:
    environment = {"VRAMSCOPE_RACK": "r1", "VRAMSCOPE_ISLAND": "i1"}
    place = host_place("", "", [port("fe80000000000007")], environment)
    assert place == HostPlace("r1", "i1")


def test_subnet_that_all_active_ports_agree_on_is_the_island() -> None:
    ports = [port("fe80000000000007"), port("fe80000000000007"), port("fe80000000000008", "down")]
    assert host_place("", "", ports, {}).island == "ib-fe80000000000007"


def test_ports_of_several_subnets_name_no_island() -> None:
    ports = [port("fe80000000000007"), port("fe80000000000008")]
    assert host_place("", "", ports, {}) == HostPlace()


def test_default_subnet_names_no_island() -> None:
    assert host_place("", "", [port("")], {}) == HostPlace()
