"""The listener: what reaches an engine, what comes back, what is counted."""

import asyncio
import gzip
import io
import json
from typing import Any

import aiohttp
import pytest

from vramscope.controller.belief import Observation

OpenHouse = Any  # conftest is not importable
ASK = {"model": "tiny", "prompt": "hello"}


async def test_a_stream_passes_chunk_by_chunk(open_house: OpenHouse) -> None:
    house = await open_house()
    body = {**ASK, "stream": True, "fake": {"chunks": 3, "step": True}}
    async with asyncio.timeout(10), house.post(body) as answer:
        assert answer.status == 200
        assert answer.content_type == "text/event-stream"
        for number in range(3):
            # The engine writes the next chunk only once this one has been read.
            house.engines["a"].release.release()
            assert await answer.content.readuntil(b"\n\n") == b"data: %d\n\n" % number
        assert await answer.content.read() == b"data: [DONE]\n\n"
    assert house.count("vramscope_requests_total", model="tiny", outcome="completed") == 1
    assert house.count("vramscope_time_to_first_token_seconds_count", model="tiny") == 1
    assert house.count("vramscope_request_seconds_count", model="tiny") == 1


@pytest.mark.parametrize("phase", ["headers", "token", "stream"])
async def test_a_clients_abort_reaches_the_engine(open_house: OpenHouse, phase: str) -> None:
    house = await open_house()
    body = {**ASK, "stream": True, "fake": {"hold": phase}}

    async def ask() -> None:
        async with house.post(body) as answer:
            if phase == "stream":
                await answer.content.readuntil(b"\n\n")
            headers_came.set()
            await answer.content.read()

    headers_came = asyncio.Event()
    async with asyncio.timeout(10):
        client = asyncio.create_task(ask())
        seen = await house.engines["a"].arrived.get()
        if phase != "headers":
            await headers_came.wait()
        assert house.ledger.in_flight("a") == 1
        client.cancel()
        await seen.aborted.wait()
        await house.front_door._idle.wait()
    assert house.ledger.total == 0
    assert house.count("vramscope_requests_total", model="tiny", outcome="cancelled") == 1


async def test_an_abort_of_a_plain_request_reaches_the_engine(open_house: OpenHouse) -> None:
    house = await open_house()
    async with asyncio.timeout(10):
        client = asyncio.create_task(house.post({**ASK, "fake": {"hold": "headers"}}).__aenter__())
        seen = await house.engines["a"].arrived.get()
        client.cancel()
        await seen.aborted.wait()


async def test_an_unknown_model_is_404_and_never_sent(open_house: OpenHouse) -> None:
    house = await open_house()
    for path in ("/v1/completions", "/v1/chat/completions"):
        async with house.post({"model": "gpt-x", "prompt": "secret"}, path) as answer:
            error = (await answer.json())["error"]
            assert answer.status == 404
            assert error["code"] == "model_not_found"
            assert error["type"] == "NotFoundError"
            assert "secret" not in json.dumps(error)
    assert house.engines["a"].seen == []
    count = house.count("vramscope_requests_total", model="_none", outcome="unknown_model")
    assert count == 2
    assert house.count("vramscope_requests_total", model="gpt-x", outcome="unknown_model") is None


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b"1" * 5000, "not JSON"),
        (b"[1]", "a JSON list"),
        (b'"text"', "a JSON str"),
        (b"{}", "'model' is missing"),
        (b'{"model": 3}', "'model' is missing or not text"),
        (b'{"model": ""}', "'model' is missing"),
    ],
)
async def test_a_malformed_body_is_400_in_openais_shape(
    open_house: OpenHouse, body: bytes, says: str
) -> None:
    house = await open_house()
    async with house.session.post(f"{house.url}/v1/completions", data=body) as answer:
        error = (await answer.json())["error"]
        assert answer.status == 400
        assert says in error["message"]
        assert error["type"] == "BadRequestError"
        assert answer.headers["X-Request-Id"]
    assert house.engines["a"].seen == []
    assert house.count("vramscope_requests_total", model="_none", outcome="client_error") == 1


async def test_a_body_that_is_too_large_is_413_in_openais_shape(open_house: OpenHouse) -> None:
    house = await open_house(max_request_bytes=2000)
    async with house.post({**ASK, "prompt": "x" * 2000}) as answer:
        error = (await answer.json())["error"]
        assert answer.status == 413
        assert "at most 2000 bytes" in error["message"]
    assert house.engines["a"].seen == []
    assert house.count("vramscope_requests_total", model="_none", outcome="client_error") == 1


async def test_wrong_paths_and_methods_are_refused_in_openais_shape(open_house: OpenHouse) -> None:
    house = await open_house()
    async with house.session.get(f"{house.url}/v2") as answer:
        assert answer.status == 404
        assert (await answer.json())["error"]["type"] == "NotFoundError"
    async with house.session.get(f"{house.url}/v1/completions") as answer:
        assert answer.status == 405
        assert answer.headers["Allow"] == "POST"
        assert "error" in await answer.json()


async def test_no_ready_engine_is_503_with_retry_after(open_house: OpenHouse) -> None:
    house = await open_house("ab")
    for member in house.fleet:
        member.ready = False
    async with house.post(ASK) as answer:
        assert answer.status == 503
        assert int(answer.headers["Retry-After"]) > 0
        assert (await answer.json())["error"]["code"] == "no_engine"
    assert house.count("vramscope_requests_total", model="tiny", outcome="no_engine") == 1
    async with house.session.get(f"{house.url}/health") as answer:
        assert answer.status == 503
    house.fleet["b"].ready = True
    async with house.session.get(f"{house.url}/health") as answer:
        assert answer.status == 200


async def test_a_refused_connection_goes_to_the_next_engine(open_house: OpenHouse) -> None:
    house = await open_house("ab", down="a")
    async with house.post(ASK) as answer:
        assert answer.status == 200
    assert len(house.engines["b"].seen) == 1
    assert house.count("vramscope_dispatch_retries_total", engine="a") == 1
    assert house.count("vramscope_requests_total", model="tiny", outcome="completed") == 1
    assert house.ledger.total == 0


async def test_a_second_refused_connection_is_503(open_house: OpenHouse) -> None:
    house = await open_house("abc", down="abc", policy="round-robin")
    async with house.post(ASK) as answer:
        assert answer.status == 503
        assert int(answer.headers["Retry-After"]) > 0
    assert house.count("vramscope_decisions_total", policy="round-robin", reason="turn") == 2
    assert house.count("vramscope_requests_total", model="tiny", outcome="no_engine") == 1
    assert house.ledger.total == 0


async def test_what_was_sent_once_is_never_sent_again(open_house: OpenHouse) -> None:
    house = await open_house("ab", policy="round-robin")
    async with house.post({**ASK, "fake": {"die": "headers"}}) as answer:
        assert answer.status == 502
        assert (await answer.json())["error"]["code"] == "engine_died"
    assert [len(engine.seen) for engine in house.engines.values()] == [1, 0]
    assert house.count("vramscope_requests_total", model="tiny", outcome="engine_error") == 1


@pytest.mark.parametrize("phase", ["token", "stream"])
async def test_an_engine_that_dies_mid_stream_ends_it_with_an_error_event(
    open_house: OpenHouse, phase: str
) -> None:
    house = await open_house("ab", policy="round-robin")
    async with house.post({**ASK, "stream": True, "fake": {"die": phase}}) as answer:
        assert answer.status == 200
        events = [event for event in (await answer.content.read()).split(b"\n\n") if event]
    assert b"[DONE]" not in events[-1]
    assert json.loads(events[-1].removeprefix(b"data: "))["error"]["code"] == 502
    assert len(events) == (2 if phase == "stream" else 1)
    assert house.count("vramscope_requests_total", model="tiny", outcome="engine_error") == 1
    assert house.engines["b"].seen == []


async def test_vllms_own_error_event_counts_as_an_engine_error(open_house: OpenHouse) -> None:
    house = await open_house()
    async with house.post({**ASK, "stream": True, "fake": {"error_event": True}}) as answer:
        assert b"EngineDeadError" in await answer.content.read()
    assert house.count("vramscope_requests_total", model="tiny", outcome="engine_error") == 1


@pytest.mark.parametrize(
    ("status", "outcome"), [(200, "completed"), (422, "client_error"), (500, "engine_error")]
)
async def test_an_engines_status_is_passed_on_and_counted(
    open_house: OpenHouse, status: int, outcome: str
) -> None:
    house = await open_house()
    async with house.post({**ASK, "fake": {"status": status}}) as answer:
        assert answer.status == status
    assert house.count("vramscope_requests_total", model="tiny", outcome=outcome) == 1


async def test_a_sane_request_id_is_kept_and_any_other_replaced(open_house: OpenHouse) -> None:
    house = await open_house()
    for given, kept in {"job-1.x_Y": True, "a b": False, "x" * 129: False, "": False}.items():
        async with house.post(ASK, headers={"X-Request-Id": given}) as answer:
            returned = answer.headers.getall("X-Request-Id")
        assert returned == [house.engines["a"].seen[-1].headers["X-Request-Id"]]
        assert (returned == [given]) is kept
        if not kept:
            assert len(returned[0]) == 32


async def test_hop_by_hop_headers_stay_on_their_hop(open_house: OpenHouse) -> None:
    house = await open_house()
    sent = {"Connection": "keep-alive, X-Mine", "X-Mine": "1", "TE": "trailers", "X-End": "1"}
    async with house.post(ASK, headers=sent) as answer:
        assert "X-Hop" not in answer.headers
        assert answer.headers["X-Kept"] == "1"
        assert len(answer.headers.getall("Date")) == 1
    got = house.engines["a"].seen[0].headers
    assert "X-Mine" not in got
    assert "TE" not in got
    assert got["X-End"] == "1"
    assert got["Host"] == f"127.0.0.1:{house.engines['a'].port}"


async def test_a_packed_body_reaches_the_engine_unpacked(open_house: OpenHouse) -> None:
    house = await open_house()
    async with house.post(ASK, compress="gzip") as answer:
        assert answer.status == 200
    assert house.engines["a"].seen[0].body == ASK
    assert "Content-Encoding" not in house.engines["a"].seen[0].headers


async def test_the_body_reaches_the_engine_byte_for_byte(open_house: OpenHouse) -> None:
    house = await open_house()
    body = b'{"model": "tiny",   "prompt": "\\u00e9", "prompt": [1, 2], "seed": 1.50}'
    async with house.session.post(f"{house.url}/v1/completions", data=body) as answer:
        assert answer.status == 200
    assert house.engines["a"].seen[0].headers["Content-Length"] == str(len(body))


async def test_a_large_body_reaches_the_engine_whole(open_house: OpenHouse) -> None:
    house = await open_house(max_request_bytes=1 << 24)
    body = {**ASK, "prompt": "x" * 5_000_000}
    data = io.BytesIO(json.dumps(body).encode())
    async with house.session.post(f"{house.url}/v1/completions", data=data) as answer:
        assert answer.status == 200
    assert house.engines["a"].seen[0].body == body


async def test_models_and_adapters_are_listed_with_their_parents(open_house: OpenHouse) -> None:
    house = await open_house("ab", adapters={"french": "org/french"})
    async with house.session.get(f"{house.url}/v1/models") as answer:
        listed = await answer.json()
    assert listed["object"] == "list"
    models = {(one["id"], one["parent"]): one for one in listed["data"]}
    assert set(models) == {("tiny", None), ("french", "tiny")}
    assert models["tiny", None] == {
        "id": "tiny",
        "object": "model",
        "created": 1000,
        "owned_by": "vramscope",
        "root": "tiny",
        "parent": None,
    }


async def test_an_adapters_request_goes_where_it_is_warm(
    open_house: OpenHouse, sample: Any, kv: Any
) -> None:
    house = await open_house("ab", adapters={"french": "org/french"})
    now_s = asyncio.get_running_loop().time()
    for name, resident in {"a": {}, "b": {"french": "gpu"}}.items():
        one = sample(name, kv(50), resident=resident)
        house.observations[name] = Observation((one,), now_s)
    for _ in range(3):
        async with house.post({**ASK, "model": "french"}) as answer:
            assert answer.status == 200
    assert [len(engine.seen) for engine in house.engines.values()] == [0, 3]
    assert house.count("vramscope_router_lora_picks_total", warmth="gpu") == 3
    assert house.count("vramscope_decisions_total", policy="seed", reason="warm_adapter") == 3


async def test_fifty_streams_at_once_spread_and_all_complete(open_house: OpenHouse) -> None:
    house = await open_house("ab")

    async def one(number: int) -> bytes:
        body = {**ASK, "stream": True, "fake": {"chunks": 20}}
        async with house.post(body, headers={"X-Request-Id": f"r{number}"}) as answer:
            assert answer.headers["X-Request-Id"] == f"r{number}"
            content: bytes = await answer.content.read()
            return content

    whole = b"".join(b"data: %d\n\n" % number for number in range(20)) + b"data: [DONE]\n\n"
    async with asyncio.timeout(30):
        assert await asyncio.gather(*map(one, range(50))) == [whole] * 50
    shares = [len(engine.seen) for engine in house.engines.values()]
    assert sum(shares) == 50
    assert min(shares) >= 20
    assert house.ledger.total == 0


async def test_draining_refuses_the_new_and_waits_for_the_old(open_house: OpenHouse) -> None:
    house = await open_house()
    body = {**ASK, "stream": True, "fake": {"chunks": 1, "step": True}}
    async with asyncio.timeout(10), house.post(body) as answer:
        drain = asyncio.create_task(house.front_door.drain())
        await asyncio.sleep(0)  # lets the drain begin
        async with house.post(ASK) as refused:
            assert refused.status == 503
            assert refused.headers["Connection"] == "close"
        assert not drain.done()
        house.engines["a"].release.release()
        assert await answer.content.read() == b"data: 0\n\ndata: [DONE]\n\n"
        await drain
    assert house.front_door.active == 0


async def test_an_http_1_0_client_gets_its_stream_unchunked(open_house: OpenHouse) -> None:
    house = await open_house()
    port = int(house.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = json.dumps({**ASK, "stream": True}).encode()
    head = f"POST /v1/completions HTTP/1.0\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    async with asyncio.timeout(10):
        answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    assert answer.endswith(b"\r\n\r\ndata: 0\n\ndata: 1\n\ndata: 2\n\ndata: [DONE]\n\n")


HEAD = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\n"


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01 secret\r\n\r\n",
        HEAD + b"Content-Encoding: gzip\r\nContent-Length: 6\r\n\r\nsecret",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nsecret\r\n",
        HEAD + b"Content-Length: 6\r\nContent-Length: 7\r\n\r\nsecret",
    ],
)
async def test_malformed_http_is_400_disturbs_nobody_and_is_not_quoted_in_the_log(
    open_house: OpenHouse, sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    house = await open_house()
    port = int(house.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    async with asyncio.timeout(10):
        assert b" 400 " in await reader.readline()
        await reader.read()  # the connection is closed
    writer.close()
    await writer.wait_closed()
    assert caplog.text == ""
    async with house.post(ASK) as answer:
        assert answer.status == 200


async def test_a_packed_body_counts_at_its_full_size(open_house: OpenHouse) -> None:
    house = await open_house()
    packed = gzip.compress(json.dumps({**ASK, "prompt": "x" * 10_000_000}).encode())
    headers = {"Content-Encoding": "gzip"}
    url = f"{house.url}/v1/completions"
    async with house.session.post(url, data=packed, headers=headers) as answer:
        assert answer.status == 413
    assert house.engines["a"].seen == []


async def test_the_engine_is_asked_for_no_packed_answer_the_client_did_not_ask_for(
    open_house: OpenHouse,
) -> None:
    house = await open_house()
    async with (
        aiohttp.ClientSession(skip_auto_headers=("Accept-Encoding",)) as plain,
        plain.post(f"{house.url}/v1/completions", json=ASK) as answer,
    ):
        assert answer.status == 200
    assert "Accept-Encoding" not in house.engines["a"].seen[0].headers
