"""OpenAI's shapes of errors and of the model list."""

import json
from collections.abc import Mapping

from aiohttp import web

__all__ = ["error_body", "error_event", "error_response", "model_list"]

TYPES = {404: "NotFoundError", 503: "ServiceUnavailableError", 502: "InternalServerError"}


def error_body(status: int, message: str, code: str | None = None) -> dict[str, object]:
    """Return the JSON object of an error: ``{"error": {...}}``.

    Args:
        status: the HTTP status it goes with.
        message: what was seen and what is wanted; shows nothing of the prompt.
        code: OpenAI's code of the error, such as ``model_not_found``.
    """
    kind = TYPES.get(status, "BadRequestError" if status < 500 else "InternalServerError")
    return {"error": {"message": message, "type": kind, "param": None, "code": code or status}}


def error_response(
    status: int, message: str, code: str | None = None, headers: Mapping[str, str] | None = None
) -> web.Response:
    """Return an error as a whole answer."""
    return web.json_response(error_body(status, message, code), status=status, headers=headers)


def error_event(message: str) -> bytes:
    """Return an error as the last event of a stream whose status is already sent.

    It begins with a blank line, so that it stands alone whatever came before it.
    """
    return f"\n\ndata: {json.dumps(error_body(502, message))}\n\n".encode()


def model_list(models: Mapping[str, str | None], created_at_s: int) -> dict[str, object]:
    """Return the answer to GET /v1/models.

    Args:
        models: names with their base model where they are adapters.
        created_at_s: Unix time of the list.
    """
    return {
        "object": "list",
        "data": [
            {
                "id": name,
                "object": "model",
                "created": created_at_s,
                "owned_by": "vramscope",
                "root": name,
                "parent": parent,
            }
            for name, parent in models.items()
        ],
    }
