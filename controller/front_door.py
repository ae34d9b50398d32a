"""The OpenAI-compatible listener: checks a request, picks an engine, and relays.

Nothing of a prompt or an answer is logged or counted. A request is sent to one engine,
once; only an engine that took no connection, to which nothing was sent, is followed by the
next best one.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import aiohttp
from aiohttp import web
from aiohttp.typedefs import Handler

from vramscope.controller.fleet import Fleet
from vramscope.controller.headers import REQUEST_ID
from vramscope.controller.ledger import Ledger
from vramscope.controller.metrics import ControllerMetrics
from vramscope.controller.openai_shape import error_response, model_list
from vramscope.controller.relay import NotConnectedError, Relayed, relay
from vramscope.controller.request import BadRequestError, RouteRequest, parse, request_id, size
from vramscope.controller.router import Router

__all__ = ["FrontDoor"]

ENGINES_PER_REQUEST = 2
RETRY_AFTER_S = 5
"""What a client is told to wait while no engine is ready; one boots in 15 s to minutes."""


@dataclass(slots=True)
class Account:
    """What is counted of one request.

    Attributes:
        arrived_s: monotonic moment of its arrival.
        model: the served name it asked for; None until that is known.
        outcome: how it ended; until it does, a cancellation is what ends it.
    """

    arrived_s: float
    model: str | None = None
    outcome: str = "cancelled"


class FrontDoor:
    """Serves /v1/completions, /v1/chat/completions, /v1/models and /health.

    Args:
        fleet: who serves what and is ready.
        router: picks an engine.
        ledger: told of each dispatch and its end.
        session: for talking to engines, see ``relay.client_session``.
        metrics: told of each request.
        assumed_output_tokens: of a chat that sets no limit.
        max_request_bytes: a larger body is refused.
        clock: monotonic seconds, the same as the ledger's.
        started_at_s: Unix time, for the model list.
    """

    def __init__(
        self,
        *,
        fleet: Fleet,
        router: Router,
        ledger: Ledger,
        session: aiohttp.ClientSession,
        metrics: ControllerMetrics,
        assumed_output_tokens: int,
        max_request_bytes: int,
        clock: Callable[[], float],
        started_at_s: float,
    ) -> None:
        self._fleet = fleet
        self._models = fleet.models
        self._router = router
        self._ledger = ledger
        self._session = session
        self._metrics = metrics
        self._assumed_output_tokens = assumed_output_tokens
        self._max_request_bytes = max_request_bytes
        self._clock = clock
        self._started_at_s = started_at_s
        self._draining = False
        self._active = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def app(self) -> web.Application:
        """Return the application; serve it with ``handler_cancellation=True``.

        Without that, a client that leaves before the first byte goes unnoticed and its
        request runs on for nobody.
        """
        app = web.Application(client_max_size=self._max_request_bytes, middlewares=[_openai_errors])
        app.router.add_post("/v1/completions", self._completions)
        app.router.add_post("/v1/chat/completions", self._chat_completions)
        app.router.add_get("/v1/models", self._list_models)
        app.router.add_get("/health", self._health)
        return app

    @property
    def active(self) -> int:
        """Requests being answered now."""
        return self._active

    async def drain(self) -> None:
        """Refuse new requests from now on and wait until the last one is answered."""
        self._draining = True
        await self._idle.wait()

    async def _completions(self, http: web.Request) -> web.StreamResponse:
        return await self._accounted(http, chat=False)

    async def _chat_completions(self, http: web.Request) -> web.StreamResponse:
        return await self._accounted(http, chat=True)

    async def _list_models(self, _: web.Request) -> web.Response:
        return web.json_response(model_list(self._models, int(self._started_at_s)))

    async def _health(self, _: web.Request) -> web.Response:
        ready = not self._draining and any(member.ready for member in self._fleet)
        return web.Response(status=200 if ready else 503)

    async def _accounted(self, http: web.Request, *, chat: bool) -> web.StreamResponse:
        account = Account(self._clock())
        self._active += 1
        self._idle.clear()
        try:
            relayed = await self._answer(http, account, chat=chat)
        except web.HTTPException:  # the body is too large
            account.outcome = "client_error"
            raise
        else:
            account.outcome = relayed.outcome
            return relayed.response
        finally:
            self._active -= 1
            if self._active == 0:
                self._idle.set()
            self._metrics.finished(
                account.model, account.outcome, self._clock() - account.arrived_s
            )

    async def _answer(self, http: web.Request, account: Account, *, chat: bool) -> Relayed:
        name = request_id(http.headers.get(REQUEST_ID))
        if self._draining:
            return _no_engine(name, "shutting down", close=True)
        try:
            body = await http.read()
            fields = parse(body)
        except web.RequestPayloadError:
            message = "the body does not arrive as its headers say: want it whole and well packed"
            response = error_response(400, message, headers={REQUEST_ID: name})
            response.force_close()
            return Relayed(response, "client_error")
        except BadRequestError as error:
            response = error_response(400, str(error), headers={REQUEST_ID: name})
            return Relayed(response, "client_error")
        model = str(fields["model"])
        if model not in self._models:
            message = "the model does not exist: GET /v1/models lists those that do"
            response = error_response(404, message, "model_not_found", {REQUEST_ID: name})
            return Relayed(response, "unknown_model")
        account.model = model
        tokens = size(fields, chat=chat, assumed_output_tokens=self._assumed_output_tokens)
        adapter = model if self._models[model] is not None else None
        return await self._dispatch(
            http, body, account, RouteRequest(model, adapter, *tokens), name
        )

    async def _dispatch(
        self, http: web.Request, body: bytes, account: Account, request: RouteRequest, name: str
    ) -> Relayed:
        """Relay to the best engine, or to the next best where it takes no connection."""
        refused: list[str] = []

        def first_byte() -> None:
            self._metrics.first_byte(request.model, self._clock() - account.arrived_s)

        while len(refused) < ENGINES_PER_REQUEST:
            pick = self._router.pick(request, without=refused)
            if pick is None:
                break
            decision, belief = pick
            self._metrics.picked(decision, belief, request.adapter)
            if refused:
                self._metrics.refused(refused[-1])
            entry = self._ledger.dispatch(decision.engine, request, self._clock())
            try:
                return await relay(
                    http,
                    body,
                    session=self._session,
                    url=self._fleet[decision.engine].url,
                    request_id=name,
                    first_byte=first_byte,
                )
            except NotConnectedError:
                refused.append(decision.engine)
            finally:
                self._ledger.finish(entry)
        return _no_engine(name, f"no engine of model {request.model!r} is ready", close=False)


def _no_engine(name: str, message: str, *, close: bool) -> Relayed:
    headers = {REQUEST_ID: name, "Retry-After": str(RETRY_AFTER_S)}
    response = error_response(503, message, "no_engine", headers)
    if close:
        response.force_close()
    return Relayed(response, "no_engine")


@web.middleware
async def _openai_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Give aiohttp's own refusals (404, 405, 413) OpenAI's shape."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        allow = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else {}
        name = request_id(request.headers.get(REQUEST_ID))
        return error_response(
            error.status, _refusal(error, request), headers={**allow, REQUEST_ID: name}
        )


def _refusal(error: web.HTTPException, request: web.Request) -> str:
    if isinstance(error, web.HTTPRequestEntityTooLarge):
        return f"the body is too large: want at most {request.client_max_size} bytes"
    return error.reason.lower()
