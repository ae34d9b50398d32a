import importlib.util
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry

from vramscope.controller.belief import Observation
from vramscope.controller.config import EngineConfig
from vramscope.controller.controller import _runner
from vramscope.controller.fleet import Fleet
from vramscope.controller.front_door import FrontDoor
from vramscope.controller.ledger import Ledger
from vramscope.controller.metrics import ControllerMetrics
from vramscope.controller.policy import POLICIES
from vramscope.controller.relay import client_session
from vramscope.controller.router import Router
from vramscope.exporters.signals.kv_samples import KvGroupSample, KvSample
from vramscope.exporters.signals.lora_samples import LoraSample
from vramscope.exporters.signals.samples import EngineSample, EngineState

HERE = Path(__file__).parent


def _load(name: str) -> ModuleType:
    """Import a helper beside the tests, which are no package."""
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


FakeEngine = _load("fake_engine").FakeEngine


@pytest.fixture
def fake_engine_file() -> Path:
    return HERE / "fake_engine.py"


@pytest.fixture
def serve_fake_file() -> Path:
    return HERE / "serve_fake.py"


@pytest.fixture
def engine_config() -> Callable[..., EngineConfig]:
    def make(name: str, **settings: Any) -> EngineConfig:
        return EngineConfig.model_validate({"name": name, "model": "org/tiny", **settings})

    return make


@dataclass
class House:
    """A front door over fake engines, all in this process."""

    engines: dict[str, Any]
    fleet: Fleet
    ledger: Ledger
    registry: CollectorRegistry
    front_door: FrontDoor
    observations: dict[str, Observation]
    session: aiohttp.ClientSession
    url: str

    def post(self, body: Any, path: str = "/v1/completions", **options: Any) -> Any:
        return self.session.post(f"{self.url}{path}", json=body, **options)

    def count(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(name, labels)


OpenHouse = Callable[..., Awaitable[House]]


@pytest.fixture
async def open_house(engine_config: Callable[..., EngineConfig]) -> AsyncIterator[OpenHouse]:
    """Open a front door over named fake engines; ``down`` ones refuse connections."""
    async with AsyncExitStack() as stack:

        async def open_(
            names: str = "a",
            *,
            down: str = "",
            policy: str = "seed",
            max_request_bytes: int = 1 << 20,
            **settings: Any,
        ) -> House:
            engines = {}
            for name in names:
                engines[name] = FakeEngine()
                if name in down:  # a port that was free a moment ago refuses connections
                    async with engines[name].serving():
                        pass
                else:
                    await stack.enter_async_context(engines[name].serving())
            configs = [engine_config(name, **settings) for name in names]
            fleet = Fleet(configs, [engines[name].port for name in names])
            for member in fleet:
                member.ready = True
            clock = time.monotonic
            ledger, registry = Ledger(), CollectorRegistry()
            observations: dict[str, Observation] = {}
            row = POLICIES[policy]
            front_door = FrontDoor(
                fleet=fleet,
                router=Router(fleet, row, ledger, observations.get, clock),
                ledger=ledger,
                session=await stack.enter_async_context(client_session()),
                metrics=ControllerMetrics(
                    registry, models=fleet.models, engines=names, policy_name=policy, policy=row
                ),
                assumed_output_tokens=256,
                max_request_bytes=max_request_bytes,
                clock=clock,
                started_at_s=1000.5,
            )
            runner = _runner(front_door.app())
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            session = await stack.enter_async_context(aiohttp.ClientSession())
            return House(engines, fleet, ledger, registry, front_door, observations, session, url)

        yield open_


@pytest.fixture
def kv() -> Callable[..., KvSample]:
    """Make a pool of 100 blocks of 16 tokens, of which ``usable`` may be taken."""

    def make(usable: int, *, age_s: float = 0.0, block_sizes: tuple[int, ...] = (16,)) -> KvSample:
        return KvSample(
            pool=0,
            blocks=100,
            live=100.0 - usable - 5,
            slack=0.0,
            lookahead=0.0,
            held=0,
            evictable=2,
            clean=usable + 3,
            reserved=5,
            age_s=age_s,
            groups=tuple(
                KvGroupSample(group, "FullAttentionSpec", size, 0)
                for group, size in enumerate(block_sizes)
            ),
        )

    return make


@pytest.fixture
def sample() -> Callable[..., EngineSample]:
    def make(
        engine: str,
        *pools: KvSample,
        resident: dict[str, str] | None = None,
        state: EngineState = EngineState.IDLE,
        dp_rank: int = 0,
        age_s: float = 0.0,
    ) -> EngineSample:
        lora = None
        if resident is not None:
            lora = LoraSample(
                requests={},
                loads={},
                load_seconds={},
                load_bounds_s=(),
                load_counts={},
                resident=resident,
                gpu_slots=1,
                cpu_slots=2,
            )
        return EngineSample(
            engine=engine,
            model="tiny",
            dp_rank=dp_rank,
            vllm_version="0.32.0",
            state=state,
            age_s=age_s,
            kv=pools,
            running=0,
            waiting=0,
            steps=0,
            preemptions={},
            preempted_tokens=0,
            prefill_tokens=0,
            recomputed_tokens=0,
            generated_tokens=0,
            cached_tokens=0,
            first_schedules=0,
            finished={},
            lora=lora,
        )

    return make
