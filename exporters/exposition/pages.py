"""An aiohttp application of a few read-only pages, for the exporter and the admin listener."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from aiohttp import web
from aiohttp.typedefs import Middleware

from vramscope.exporters.exposition.negotiation import wanted_form
from vramscope.exporters.exposition.rendered import Format, Rendered

__all__ = ["METRICS_CONTENT_TYPE", "Page", "pages"]

METRICS_CONTENT_TYPE = Format.TEXT.value

Page = Callable[[], Awaitable[web.Response | Rendered]]
"""Makes the answer to a GET. Quick: it runs on the loop that serves the others. A ``Rendered``
goes out in the form that the client wants."""


def pages(routes: Mapping[str, Page], middlewares: Sequence[Middleware] = ()) -> web.Application:
    """Return an application that answers GET and HEAD on each path of ``routes``, else 404."""
    app = web.Application(middlewares=middlewares)
    for path, page in routes.items():
        app.router.add_get(path, _handler(page))
    return app


def _handler(page: Page) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handle(request: web.Request) -> web.StreamResponse:
        answer = await page()
        return await _in_wanted_form(request, answer) if isinstance(answer, Rendered) else answer

    return handle


async def _in_wanted_form(request: web.Request, rendered: Rendered) -> web.Response:
    headers = request.headers
    form = wanted_form(headers.get("Accept", ""), headers.get("Accept-Encoding", ""))
    body = rendered.ready(form)
    if body is None:  # off the loop: a long page takes milliseconds to make
        body = await asyncio.to_thread(rendered.page, form)
    response = web.Response(body=body, headers={"Content-Type": form.format.value})
    response.headers["Vary"] = "Accept, Accept-Encoding"
    if form.gzipped:
        response.headers["Content-Encoding"] = "gzip"
    return response
