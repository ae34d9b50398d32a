"""Basic authentication against bcrypt hashes, cheap for a scraper that comes each second."""

import asyncio
import base64
import binascii
import hashlib
import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import bcrypt

__all__ = ["Passwords"]

NOBODY = "$2b$10$QAI7QkC.dSJATtUyfyamVe.3zuZ/yep8o.mV7a2Pn/8SYjNz3vIzG"
"""Checked for users that don't exist, so that the time of an answer doesn't tell who does."""
REMEMBERED = 64
BCRYPT_BYTES = 72
"""bcrypt looks no further; the library refuses more, Go's, which made the hash, cuts it off."""


class Passwords:
    """Checks Authorization headers.

    A password that was right is remembered by a keyed digest, since bcrypt takes 60 ms of CPU by
    intent. One that was wrong is not: guessing stays slow. bcrypt runs in one thread of its own,
    so that guessing takes no more than one core and never the refresh's thread.

    Args:
        users: bcrypt hash by user name; empty lets everybody in.
        matches: tells whether a password is the one of a hash.
    """

    def __init__(
        self, users: Mapping[str, str], matches: Callable[[bytes, str], bool] | None = None
    ) -> None:
        self._users = users
        self._matches = matches or _matches
        self._key = secrets.token_bytes(32)
        self._right: dict[bytes, None] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="vramscope-bcrypt")

    async def allow(self, authorization: str) -> bool:
        """Tell whether the header names a user and the right password."""
        if not self._users:
            return True
        credentials = _basic(authorization)
        if credentials is None:
            return False
        digest = hashlib.blake2b(credentials, key=self._key).digest()
        if digest in self._right:
            return True
        user, _, password = credentials.partition(b":")
        known = self._users.get(user.decode("utf-8", errors="replace"))
        loop = asyncio.get_running_loop()
        right = await loop.run_in_executor(self._thread, self._matches, password, known or NOBODY)
        if not right or known is None:
            return False
        while len(self._right) >= REMEMBERED:
            del self._right[next(iter(self._right))]
        self._right[digest] = None
        return True

    def close(self) -> None:
        """Let the thread end once it has checked what it was given."""
        self._thread.shutdown(wait=False)


def _basic(authorization: str) -> bytes | None:
    """Return ``user:password``, or None where the header is no such thing."""
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        decoded = base64.b64decode(encoded.strip(), validate=True)
    except (binascii.Error, ValueError):
        return None
    return decoded if b":" in decoded else None


def _matches(password: bytes, hashed: str) -> bool:
    try:
        return bcrypt.checkpw(password[:BCRYPT_BYTES], hashed.encode())
    except ValueError:  # a NUL in the password
        return False
