"""The web configuration in use, replaced as a whole when its files change."""

import asyncio
import logging
import ssl
from pathlib import Path
from typing import NamedTuple

from vramscope.exporters.errors import VramscopeError
from vramscope.exporters.exposition.passwords import Passwords
from vramscope.exporters.exposition.tls import tls_context
from vramscope.exporters.exposition.web_config import WebConfig, read_web_config

__all__ = ["CHECK_FILES_S", "WebInUse"]

log = logging.getLogger("vramscope.endpoint")

CHECK_FILES_S = 30.0
"""How often the files are looked at: certificates are renewed without anybody telling us."""

Stamp = tuple[int, int, int] | None
"""A file's time, size and inode; None where it is not."""


class _Loaded(NamedTuple):
    stamps: tuple[Stamp, ...]
    config: WebConfig
    context: ssl.SSLContext | None
    passwords: Passwords


class WebInUse:
    """Holds what the file says; a broken new file leaves the old one in use.

    Args:
        file: exporter-toolkit's; None serves in the clear, to anybody.

    Raises:
        VramscopeError: the file, or one that it names, has mistakes.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._now = _load(file)
        self._reloading = asyncio.Lock()

    @property
    def config(self) -> WebConfig:
        """What the file says."""
        return self._now.config

    @property
    def context(self) -> ssl.SSLContext | None:
        """What new connections are encrypted with."""
        return self._now.context

    async def allow(self, authorization: str) -> bool:
        """Tell whether a request with this Authorization header may be answered."""
        return await self._now.passwords.allow(authorization)

    async def reload(self) -> None:
        """Take over the files as they are now; log one line if that can't be."""
        if self._file is None:
            log.info("nothing to reload: no web configuration file")
        elif complaint := await self._take_over(self._file):
            log.error("kept the web configuration: %s", complaint)

    async def follow(self, check_s: float = CHECK_FILES_S) -> None:
        """Reload for ever whenever a file has changed; say what is wrong once."""
        complaint = ""
        while self._file is not None:
            await asyncio.sleep(check_s)
            stamps = await asyncio.to_thread(_stamps, self._file, self.config)
            if complaint or stamps != self._now.stamps:
                said, complaint = complaint, await self._take_over(self._file)
                if complaint and complaint != said:
                    log.error("kept the web configuration: %s", complaint)

    async def _take_over(self, file: Path) -> str:
        """Load the files; return what is wrong with them, empty when they are in use."""
        async with self._reloading:
            try:
                loaded = await asyncio.to_thread(_load, file)
            except VramscopeError as error:
                return "; ".join(str(error).splitlines())
            self._now.passwords.close()
            self._now = loaded
            log.info("reloaded %s", file)
            return ""

    def close(self) -> None:
        """Let go of the passwords' thread."""
        self._now.passwords.close()


def _load(file: Path | None) -> _Loaded:
    """Read the web configuration and the files it names.

    Raises:
        VramscopeError: what is wrong with them.
    """
    config = WebConfig() if file is None else read_web_config(file)
    # Before the certificate is read: a change in between shows at the next look.
    stamps = () if file is None else _stamps(file, config)
    context = None if config.tls is None else tls_context(config.tls)
    return _Loaded(stamps, config, context, Passwords(config.users))


def _stamps(file: Path, config: WebConfig) -> tuple[Stamp, ...]:
    tls = config.tls
    named = (tls.cert_file, tls.key_file, tls.client_ca_file) if tls else ()
    return tuple(map(_stamp, (file, *named)))


def _stamp(file: Path | None) -> Stamp:
    if file is None:
        return None
    try:
        found = file.stat()  # of what a link leads to: Kubernetes swaps links
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
