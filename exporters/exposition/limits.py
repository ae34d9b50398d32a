"""How much of the endpoint one client, or all of them, may hold."""

from dataclasses import dataclass

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on connections; a client past one is cut off, the others notice nothing.

    Attributes:
        max_connections: held at once, those in a TLS handshake included.
        handshake_timeout_s: for the TLS handshake.
        head_timeout_s: from the connection, or a request's first byte, to the end of its headers.
        answer_timeout_s: from there until the client has taken the answer.
        idle_timeout_s: between two requests of a connection.
        line_bytes: longest request line, and longest header.
        head_bytes: all that a client may send beyond the requests already begun; no page takes
            a body.
    """

    max_connections: int = 256
    handshake_timeout_s: float = 10.0
    head_timeout_s: float = 10.0
    answer_timeout_s: float = 30.0
    idle_timeout_s: float = 180.0
    line_bytes: int = 8190
    head_bytes: int = 32768
