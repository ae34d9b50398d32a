"""An aiohttp application of a few read-only pages, for the exporter and the admin listener."""

from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web

__all__ = ["METRICS_CONTENT_TYPE", "Page", "pages"]

METRICS_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Page = Callable[[], Awaitable[web.Response]]
"""Makes the answer to a GET. Quick: it runs on the loop that serves the others."""


def pages(routes: Mapping[str, Page]) -> web.Application:
    """Return an application that answers GET and HEAD on each path of ``routes``, else 404."""
    app = web.Application()
    for path, page in routes.items():
        app.router.add_get(path, _handler(page))
    return app


def _handler(page: Page) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handle(_: web.Request) -> web.StreamResponse:
        return await page()

    return handle
