"""Which headers a proxy passes on, in each direction (RFC 9110, section 7.6.1)."""

from multidict import CIMultiDict, CIMultiDictProxy

__all__ = ["REQUEST_ID", "to_client", "to_engine"]

REQUEST_ID = "X-Request-Id"

HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
# content-encoding: the server has unpacked the body. expect: it has answered 100 itself.
REQUEST_ONLY = frozenset({"host", "content-length", "content-encoding", "expect"})
# The front door is the server here, and says so with its own date.
RESPONSE_ONLY = frozenset({"content-length", "date", "server"})


def to_engine(headers: CIMultiDictProxy[str], request_id: str) -> CIMultiDict[str]:
    """Return a client's headers as the engine gets them, with the request id."""
    return _pass_on(headers, REQUEST_ONLY, request_id)


def to_client(headers: CIMultiDictProxy[str], request_id: str) -> CIMultiDict[str]:
    """Return an engine's headers as the client gets them, with the request id."""
    return _pass_on(headers, RESPONSE_ONLY, request_id)


def _pass_on(
    headers: CIMultiDictProxy[str], drop: frozenset[str], request_id: str
) -> CIMultiDict[str]:
    named = {
        token.strip().lower()
        for value in headers.getall("Connection", [])
        for token in value.split(",")
    }
    dropped = HOP_BY_HOP | drop | named | {REQUEST_ID.lower()}
    kept = CIMultiDict((key, value) for key, value in headers.items() if key.lower() not in dropped)
    kept[REQUEST_ID] = request_id
    return kept
