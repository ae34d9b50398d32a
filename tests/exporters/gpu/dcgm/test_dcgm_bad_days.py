"""A host engine that dies, GPUs that are lost and return, and XID events, on a synthetic DCGM."""

from collections.abc import Callable
from typing import Any

import pytest

from vramscope.exporters.errors import SourceUnavailableError
from vramscope.exporters.gpu.dcgm import DcgmSource

Open = Callable[..., DcgmSource]
UUID_0 = "GPU-00000000-0000-0000-0000-000000000000"
UUID_1 = "GPU-00000001-0000-0000-0000-000000000000"


def test_dead_engine_fails_reads_until_it_returns_and_is_watched_anew(
    synthetic: Any, source: Open
) -> None:
    dcgm = synthetic.SyntheticDcgm(gpus=2)
    opened = source(dcgm)
    before = opened.read()
    dcgm.alive = False
    for _ in range(2):
        with pytest.raises(SourceUnavailableError, match=r"embedded.*not valid any longer"):
            opened.read()
    dcgm.restart()
    after = opened.read()
    assert [s.memory_bytes for s in after.samples] == [s.memory_bytes for s in before.samples]
    assert len(dcgm.connections) == 2


def test_engine_that_restarted_between_two_reads_is_found_out(synthetic: Any, source: Open) -> None:
    dcgm = synthetic.SyntheticDcgm()
    opened = source(dcgm)
    dcgm.alive = False
    with pytest.raises(SourceUnavailableError):
        opened.read()
    dcgm.restart()
    assert opened.read().samples
    assert dcgm.watched


@pytest.mark.parametrize("code", [-10, -11, -21])
def test_engine_that_dies_amid_a_read_is_no_lost_gpu(
    code: int, synthetic: Any, source: Open
) -> None:
    dcgm = synthetic.SyntheticDcgm(gpus=2)
    opened = source(dcgm)
    dcgm.failing = {(synthetic.GPU, 0): code}
    with pytest.raises(SourceUnavailableError):
        opened.read()
    dcgm.failing = {}
    assert len(opened.read().samples) == 2


def test_lost_gpu_is_an_error_and_the_others_stay(synthetic: Any, source: Open) -> None:
    dcgm = synthetic.SyntheticDcgm(gpus=2)
    opened = source(dcgm)
    dcgm.lose(1)
    reading = opened.read()
    assert [s.gpu.index for s in reading.samples] == [0]
    assert reading.errors.keys() == {UUID_1}
    assert "GPU is lost" in reading.errors[UUID_1]
    assert reading.indexes == {UUID_0: 0, UUID_1: 1}
    dcgm.find(1)
    reading = opened.read()
    assert [s.gpu.index for s in reading.samples] == [0, 1]
    assert not reading.errors


def test_gpu_that_fails_the_call_for_all_is_read_apart(synthetic: Any, source: Open) -> None:
    dcgm = synthetic.SyntheticDcgm(gpus=3)
    opened = source(dcgm)
    dcgm.failing = {(synthetic.GPU, 1): synthetic.GPU_IS_LOST}
    reading = opened.read()
    assert [s.gpu.index for s in reading.samples] == [0, 2]
    assert reading.errors == {UUID_1: "GPU is unreachable (-18)"}


def test_gpu_that_was_lost_at_the_start_is_tried_again_after_a_minute(
    synthetic: Any, source: Open
) -> None:
    dcgm = synthetic.SyntheticDcgm(gpus=2)
    dcgm.failing = {(synthetic.GPU, 1): synthetic.GPU_IS_LOST}
    now_s = 0.0
    opened = source(dcgm, clock=lambda: now_s)
    assert opened.read().errors == {"1": "GPU is unreachable (-18)"}
    dcgm.failing = {}
    connections = len(dcgm.connections)
    now_s = 59.0
    assert len(opened.read().samples) == 1
    assert len(dcgm.connections) == connections
    now_s = 60.0
    assert len(opened.read().samples) == 2


def test_gpu_that_stays_lost_does_not_disturb_the_connection(synthetic: Any, source: Open) -> None:
    dcgm = synthetic.SyntheticDcgm(gpus=2)
    dcgm.failing = {(synthetic.GPU, 1): synthetic.GPU_IS_LOST}
    now_s = 0.0
    opened = source(dcgm, clock=lambda: now_s)
    for minute in range(4):
        now_s = 60.0 * minute
        assert len(opened.read().samples) == 1
    assert len(dcgm.connections) == 1


def test_gpu_with_nothing_to_read_says_why(synthetic: Any, source: Open) -> None:
    dcgm = synthetic.SyntheticDcgm()
    opened = source(dcgm)
    dcgm.statuses = {(synthetic.GPU, 0, field): -17 for field in dcgm.known}
    reading = opened.read()
    assert reading.samples == ()
    assert reading.errors == {UUID_0: "no field can be read: not permitted"}


def test_mig_reconfigured_is_watched_anew(synthetic: Any, source: Open) -> None:
    dcgm = synthetic.SyntheticDcgm()
    opened = source(dcgm)
    assert len(opened.read().samples) == 1
    dcgm.instances = {0: (0, 1, "1g.10gb"), 1: (0, 2, "1g.10gb")}
    assert len(opened.read().samples) == 3
    dcgm.instances = {0: (0, 9, "7g.80gb")}
    assert [s.gpu.mig_instance for s in opened.read().samples] == ["", "9"]


def test_each_xid_is_counted_once_from_the_moment_of_opening(synthetic: Any, source: Open) -> None:
    dcgm = synthetic.SyntheticDcgm(gpus=2)
    gpu_0, gpu_1 = (synthetic.GPU, 0), (synthetic.GPU, 1)
    dcgm.xids = {gpu_0: [(10, 31)]}
    opened = source(dcgm)
    assert opened.read().xids == {}, "it was there before"
    dcgm.xids = {gpu_0: [(10, 31), (20, 79), (21, 79), (22, 13)], gpu_1: [(30, 79)]}
    counted = {(UUID_0, 79): 2, (UUID_0, 13): 1, (UUID_1, 79): 1}
    for _ in range(3):
        assert opened.read().xids == counted, "a repeat of the last value is no event"
    dcgm.xids[gpu_1].append((40, 79))
    assert opened.read().xids == {**counted, (UUID_1, 79): 2}


def test_xids_stay_counted_when_the_engine_restarts(synthetic: Any, source: Open) -> None:
    dcgm = synthetic.SyntheticDcgm()
    gpu = synthetic.GPU, 0
    opened = source(dcgm)
    dcgm.xids = {gpu: [(20, 79)]}
    opened.read()
    dcgm.alive = False
    with pytest.raises(SourceUnavailableError):
        opened.read()
    dcgm.restart()
    dcgm.xids = {gpu: [(90, 79)]}
    assert opened.read().xids == {(UUID_0, 79): 2}
    assert opened.read().samples[0].dcgm_fields[230] == 79


def test_what_holds_xids_does_not_grow(synthetic: Any, source: Open) -> None:
    dcgm = synthetic.SyntheticDcgm()
    opened = source(dcgm)
    for at_us in range(1, 20):
        dcgm.xids = {(synthetic.GPU, 0): [(at_us, 79)]}
        opened.read()
    (held,) = dcgm.collections
    assert held.values == {}


def test_xids_that_can_not_be_read_now_cost_nothing_else(synthetic: Any, source: Open) -> None:
    dcgm = synthetic.SyntheticDcgm()
    opened = source(dcgm)
    dcgm.xid_failure = -14
    assert opened.read().samples
    dcgm.xid_failure = 0
    dcgm.xids = {(synthetic.GPU, 0): [(20, 79)]}
    assert opened.read().xids == {(UUID_0, 79): 1}


def test_xids_that_may_not_be_watched_cost_nothing_else(synthetic: Any, source: Open) -> None:
    dcgm = synthetic.SyntheticDcgm()
    dcgm.unwatchable = {230: synthetic.NO_PERMISSION}
    reading = source(dcgm).read()
    assert len(reading.samples) == 1
    assert reading.xids == {}


def test_xid_of_a_mig_instance_counts_for_its_gpu(synthetic: Any, source: Open) -> None:
    dcgm = synthetic.SyntheticDcgm()
    dcgm.instances = {4: (0, 1, "1g.10gb")}
    opened = source(dcgm)
    dcgm.xids = {(synthetic.GPU_INSTANCE, 4): [(20, 94)]}
    assert opened.read().xids == {(UUID_0, 94): 1}


def test_host_without_gpus_is_no_source(synthetic: Any, source: Open) -> None:
    dcgm = synthetic.SyntheticDcgm(gpus=0)
    with pytest.raises(SourceUnavailableError, match="no GPU that it supports"):
        source(dcgm)
    assert not dcgm.open_groups


def test_last_gpu_that_goes_and_returns(synthetic: Any, source: Open) -> None:
    dcgm = synthetic.SyntheticDcgm()
    opened = source(dcgm)
    dcgm.gpus = []
    with pytest.raises(SourceUnavailableError, match="no GPU"):
        opened.read()
    dcgm.gpus = [0]
    assert len(opened.read().samples) == 1
