"""An OpenAI-like engine that does what its requests tell it, and remembers what it saw.

A request's ``fake`` object says how to answer: ``hold`` blocks for ever at ``headers`` (before
them), ``token`` (after them) or ``stream`` (after the first chunk); ``die`` breaks the
connection at the same places; ``chunks`` is how many to stream; ``step`` waits for
``release`` before each chunk.

Also a program, for tests of processes: see ``main``.
"""

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from multidict import CIMultiDict


@dataclass
class Seen:
    """One request as the engine saw it."""

    path: str
    headers: CIMultiDict[str]
    body: dict[str, Any]
    aborted: asyncio.Event = field(default_factory=asyncio.Event)
    finished: asyncio.Event = field(default_factory=asyncio.Event)


class FakeEngine:
    """Serves on a port of 127.0.0.1 while its ``serving`` context is open."""

    def __init__(self) -> None:
        self.port = 0
        self.seen: list[Seen] = []
        self.arrived: asyncio.Queue[Seen] = asyncio.Queue()
        self.release = asyncio.Semaphore(0)

    @asynccontextmanager
    async def serving(self, port: int = 0) -> AsyncIterator["FakeEngine"]:
        app = web.Application(client_max_size=1 << 30)
        app.router.add_get("/health", self._health)
        app.router.add_post("/release", self._release)
        app.router.add_post("/v1/completions", self._generate)
        app.router.add_post("/v1/chat/completions", self._generate)
        runner = web.AppRunner(
            app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1
        )
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", port)
        await site.start()
        self.port = runner.addresses[0][1]
        try:
            yield self
        finally:
            await runner.cleanup()

    async def _health(self, _: web.Request) -> web.Response:
        return web.Response()

    async def _release(self, _: web.Request) -> web.Response:
        self.release.release()
        return web.Response()

    async def _generate(self, request: web.Request) -> web.StreamResponse:
        seen = Seen(request.path, CIMultiDict(request.headers), json.loads(await request.read()))
        self.seen.append(seen)
        self.arrived.put_nowait(seen)
        try:
            answer = await self._answer(request, seen.body)
        except asyncio.CancelledError:
            seen.aborted.set()
            raise
        seen.finished.set()
        return answer

    async def _answer(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        told = body.get("fake", {})
        await self._stop_here("headers", told, request)
        if not body.get("stream"):
            status = told.get("status", 200)
            headers = {"Connection": "X-Hop", "X-Hop": "1", "X-Request-Id": "engine", "X-Kept": "1"}
            return web.json_response({"pid": os.getpid()}, status=status, headers=headers)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await self._stop_here("token", told, request)
        for number in range(told.get("chunks", 3)):
            if told.get("step"):
                await self.release.acquire()
            await response.write(b"data: %d\n\n" % number)
            await self._stop_here("stream", told, request)
        if told.get("error_event"):
            await response.write(b'data: {"error": {"message": "EngineDeadError"}}\n\n')
        await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
        return response

    async def _stop_here(self, place: str, told: dict[str, Any], request: web.Request) -> None:
        if told.get("die") == place:
            assert request.transport is not None
            request.transport.abort()
            await asyncio.Event().wait()  # until the lost connection cancels this handler
        if told.get("exit") == place:
            os.kill(os.getpid(), signal.SIGKILL)
        if told.get("hold") == place:
            await asyncio.Event().wait()


CHILD = """
import signal, subprocess, sys, time
if sys.argv[2] == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if sys.argv[1] != "0":
    subprocess.Popen([sys.executable, "-c", sys.argv[3], "0", *sys.argv[2:]])
print("child is up", flush=True)
time.sleep(600)
"""


async def _serve(port: int) -> None:
    async with FakeEngine().serving(port):
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
        await stop.wait()


def main() -> None:
    """Serve until SIGTERM, with the misbehaviour that the flags ask for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--die", metavar="LINE", help="write a traceback that ends in LINE, exit 3")
    parser.add_argument("--mute", action="store_true", help="live, but answer nobody")
    parser.add_argument("--children", choices=("meek", "stubborn"), help="start a child of a child")
    args = parser.parse_args()
    told = {name: os.environ.get(name) for name in ("VRAMSCOPE_ENGINE", "VRAMSCOPE_RUN_DIR", "FOO")}
    sys.stdout.write(f"{json.dumps(told)}\n")
    sys.stdout.flush()
    if args.children:
        command = [sys.executable, "-c", CHILD, "1", args.children, CHILD]
        subprocess.Popen(command)
    if args.die:
        sys.stderr.write(f"Traceback (most recent call last):\n  File x\n{args.die}\nbye\n")
        sys.exit(3)
    if args.mute:
        time.sleep(600)
    asyncio.run(_serve(args.port))


if __name__ == "__main__":
    main()
