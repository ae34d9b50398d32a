"""Where the probe gets in: vLLM's scheduler class in the EngineCore, its wrapper of workers.

``register`` runs in every process of vLLM, early and more than once, so this only wraps two
methods; probes are made when the engine builds what they watch.
"""

import logging
import os
import sys
from typing import Any

from vramscope.exporters.engine.probe.hooks import Guard, hook
from vramscope.exporters.engine.probe.scheduler import SchedulerProbe
from vramscope.exporters.engine.probe.worker import WorkerProbe

__all__ = ["install"]

# Below vLLM's own logger, so that its lines come out as the engine's do.
log = logging.getLogger("vllm.vramscope")

_MARK = "_vramscope_probed"
_PROBE = "_vramscope_probe"


def install() -> None:
    """Wrap this process's entry points; again is harmless. ``VRAMSCOPE_PROBE=0`` leaves it be."""
    if os.environ.get("VRAMSCOPE_PROBE", "1") == "0":
        return
    from vllm.config import SchedulerConfig

    if hasattr(SchedulerConfig, "get_scheduler_cls"):
        if not hasattr(SchedulerConfig, _MARK):
            setattr(SchedulerConfig, _MARK, True)
            _wrap_scheduler_choice(SchedulerConfig)
    else:
        _wrap_scheduler_init()
    if "vllm.v1.worker.worker_base" in sys.modules:
        _watch_workers()


def _wrap_scheduler_choice(config_class: Any) -> None:
    original = config_class.get_scheduler_cls
    classes: dict[type, type] = {}

    def get_scheduler_cls(self: Any) -> type:
        base: type = original(self)
        try:
            # An EngineCore's process: its worker may live here too.
            _watch_workers()
            if base not in classes:
                classes[base] = _probed(base)
            return classes[base]
        except Exception as error:  # noqa: BLE001  # the engine never dies of its telemetry
            log.warning("vramscope: no probe: %s: %s", type(error).__name__, error)
            return base

    config_class.get_scheduler_cls = get_scheduler_cls


def _probed(base: type) -> type:
    """Return a subclass of any scheduler class that attaches a probe to each instance."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        base.__init__(self, *args, **kwargs)  # type: ignore[misc]
        _attach_scheduler(self)

    body = {"__init__": __init__, "__module__": base.__module__, "__doc__": base.__doc__}
    return type(base.__name__, (base,), body)


def _wrap_scheduler_init() -> None:
    """Attach where a release has no choice of scheduler class to wrap."""
    from vllm.v1.core.sched.scheduler import Scheduler

    if not hasattr(Scheduler, _MARK):
        setattr(Scheduler, _MARK, True)
        hook(Scheduler, "__init__", Guard(log.warning), after=_after_scheduler_init)


def _after_scheduler_init(_: None, scheduler: Any, *__: Any, **___: Any) -> None:
    _watch_workers()
    _attach_scheduler(scheduler)


def _attach_scheduler(scheduler: Any) -> None:
    try:
        probe = SchedulerProbe(scheduler)
        setattr(scheduler, _PROBE, probe)
        log.info("vramscope: probe attached, record %s", probe.record)
    except Exception as error:  # noqa: BLE001  # the engine never dies of its telemetry
        log.warning("vramscope: no probe: %s: %s", type(error).__name__, error)


def _watch_workers() -> None:
    """Have each worker of this process get a probe once its model is loaded."""
    from vllm.v1.worker.worker_base import WorkerWrapperBase

    if not hasattr(WorkerWrapperBase, _MARK):
        setattr(WorkerWrapperBase, _MARK, True)
        guard = Guard(log.warning)
        # Not the worker's own class: each platform and each user may bring another.
        hook(WorkerWrapperBase, "init_device", guard, before=_before_init_device)


def _before_init_device(wrapper: Any, *_: Any, **__: Any) -> None:
    worker = wrapper.worker

    def attach(*_: Any, **__: Any) -> None:
        if not hasattr(worker, _PROBE):
            setattr(worker, _PROBE, WorkerProbe(worker))

    hook(worker, "load_model", Guard(log.warning), after=attach)
