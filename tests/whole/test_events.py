"""Request events: what a controller can learn of a request that it named itself."""

import json
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from vramscope.exporters.engine.reader import RecordReader
from vramscope.exporters.engine.record import Event, EventKind, Tier, request_hash

pytestmark = pytest.mark.vllm

LIFE = [
    EventKind.QUEUED,
    EventKind.FIRST_SCHEDULED,
    EventKind.FIRST_TOKEN,
    EventKind.FINISHED,
]
Events = Callable[[str, str, int], list[Event]]


@pytest.fixture
def events(suite: Any) -> Iterator[Events]:
    """Returns the events of a request, by its external id, once there are as many as wanted."""
    readers: dict[tuple[str, str], RecordReader] = {}

    def find(role: str, external_id: str, wanted: int) -> list[Event]:
        deadline_s = time.monotonic() + 10
        while True:
            found = []
            for engine in suite.engines:
                (path,) = Path(suite.run_dir).glob(f"{engine}.dp0.{role}0.*")
                reader = readers.setdefault((engine, role), RecordReader(str(path)))
                written, _, _ = reader.events(0)
                found += [e for e in written if e.request == request_hash(external_id)]
            if len(found) >= wanted:
                return found
            assert time.monotonic() < deadline_s, found
            time.sleep(0.05)

    yield find
    for reader in readers.values():
        reader.close()


def ask(url: str, name: str, body: dict[str, Any]) -> dict[str, Any]:
    request = urllib.request.Request(
        url,
        json.dumps({"temperature": 0, "max_tokens": 7, "ignore_eos": True, **body}).encode(),
        {"Content-Type": "application/json", "X-Request-Id": name},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        result: dict[str, Any] = json.loads(answer.read())
        return result


def test_life_of_a_completion_through_the_front_door(suite: Any, events: Events) -> None:
    body = {"model": "tiny", "prompt": "tell me of your life"}
    usage = ask(f"{suite.front_door}/v1/completions", "life-1", body)["usage"]
    queued, _, _, finished = life = events("engine", "cmpl-life-1-0", 4)
    assert [event.kind for event in life] == LIFE
    assert [event.time_s for event in life] == sorted(event.time_s for event in life)
    assert (queued.tokens, queued.detail) == (usage["prompt_tokens"], 7)
    assert finished.tokens == usage["completion_tokens"] == 7


def test_life_of_a_chat_through_the_front_door(suite: Any, events: Events) -> None:
    body = {"model": "tiny", "messages": [{"role": "user", "content": "hello"}]}
    ask(f"{suite.front_door}/v1/chat/completions", "life-2", body)
    assert [event.kind for event in events("engine", "chatcmpl-life-2", 4)] == LIFE


def test_adapter_of_a_request_is_told_by_its_worker(suite: Any, events: Events) -> None:
    for number, tiers in enumerate(((Tier.GPU, Tier.CPU, Tier.DISK), (Tier.GPU,))):
        # Straight to one engine: the second finds the adapter where the first left it.
        body = {"model": "ad1", "prompt": "x"}
        ask(f"{suite.engines['a']}/v1/completions", f"adapter-{number}", body)
        (applied,) = events("worker", f"cmpl-adapter-{number}-0", 1)
        assert applied.kind == EventKind.ADAPTER_APPLIED
        assert applied.tier in tiers
        assert applied.adapter > 0
