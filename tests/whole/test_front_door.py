"""The front door in front of real engines."""

import json
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

import pytest

pytestmark = pytest.mark.vllm


def post(url: str, body: dict[str, Any]) -> tuple[int, str]:
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_models_are_those_of_the_file(suite: Any) -> None:
    with urllib.request.urlopen(f"{suite.front_door}/v1/models", timeout=10) as answer:
        models = json.loads(answer.read())["data"]
    assert sorted(model["id"] for model in models) == ["ad0", "ad1", "ad2", "tiny"]


@pytest.mark.parametrize("model", ["tiny", "ad1"])
def test_completion_is_the_engines_own(suite: Any, model: str) -> None:
    body = {"model": model, "prompt": "hello", "max_tokens": 6, "temperature": 0}
    status, through = post(f"{suite.front_door}/v1/completions", body)
    _, direct = post(f"{suite.engines['a']}/v1/completions", body)
    assert status == 200
    assert json.loads(through)["choices"] == json.loads(direct)["choices"]


def test_chat_streams_and_ends(suite: Any) -> None:
    body = {
        "model": "tiny",
        "messages": [{"role": "user", "content": "hello"}],
        "max_tokens": 5,
        "stream": True,
        "ignore_eos": True,
    }
    status, text = post(f"{suite.front_door}/v1/chat/completions", body)
    events = [line for line in text.splitlines() if line.startswith("data: ")]
    assert status == 200
    assert len(events) >= 5
    assert events[-1] == "data: [DONE]"


def test_unknown_model_is_404_and_reaches_no_engine(suite: Any) -> None:
    before = {engine: suite.signals(engine)["first_schedules"] for engine in suite.engines}
    status, text = post(f"{suite.front_door}/v1/completions", {"model": "gpt-9", "prompt": "x"})
    assert status == 404
    assert json.loads(text)["error"]["code"] == "model_not_found"
    after = {engine: suite.signals(engine)["first_schedules"] for engine in suite.engines}
    assert after == before


def test_abort_of_a_stream_reaches_the_engine_and_frees_its_blocks(suite: Any) -> None:
    def aborted() -> int:
        return sum(suite.signals(engine)["finished"]["aborted"] for engine in suite.engines)

    before = aborted()
    address = urllib.parse.urlsplit(suite.front_door)
    body = json.dumps(
        {"model": "tiny", "prompt": "x", "max_tokens": 400, "stream": True, "ignore_eos": True}
    )
    with socket.create_connection((address.hostname, address.port), timeout=30) as client:
        client.sendall(
            b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            + f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
        )
        seen = b""
        while seen.count(b"data: ") < 3:
            seen += client.recv(4096)
    deadline_s = time.monotonic() + 10
    while aborted() == before:
        assert time.monotonic() < deadline_s
        time.sleep(0.1)
    assert aborted() == before + 1
