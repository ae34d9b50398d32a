"""The log of aiohttp's servers, without what clients sent."""

import logging
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

__all__ = ["HttpLog"]


class HttpLog(logging.LoggerAdapter[logging.Logger]):
    """Reports our own errors in full, and malformed HTTP in one line at debug level.

    aiohttp logs a traceback that quotes the bytes it could not parse. They may be somebody's
    prompt, and a port scan would fill the log.
    """

    def exception(self, msg: object, *args: object, **kwargs: Any) -> None:
        """Log an exception, less what a client sent."""
        error = kwargs.get("exc_info")
        if isinstance(error, HttpProcessingError | web.RequestPayloadError):
            self.debug("malformed HTTP: %s", type(error).__name__)
            return
        super().exception(msg, *args, **kwargs)
