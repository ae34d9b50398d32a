"""Certificates, and a client that shows every byte of an answer."""

import asyncio
import contextlib
import datetime as dt
import ipaddress
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

TIMEOUT_S = 20.0
"""Of anything a test waits for: a failure, never a pace."""


class Authority:
    """Signs certificates."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.file = folder / "ca.pem"
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority")])
        certificate = self._sign(self.name, self.key, is_authority=True)
        self.file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str) -> tuple[Path, Path]:
        """Return the files of a certificate for 127.0.0.1 and of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        files = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        certificate = self._sign(subject, key, is_authority=False)
        files[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        files[1].write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return files

    def _sign(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, *, is_authority: bool
    ) -> x509.Certificate:
        now = dt.datetime.now(dt.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(hours=1))
            .not_valid_after(now + dt.timedelta(hours=1))
            .add_extension(x509.BasicConstraints(is_authority, None), critical=True)
            # Python 3.13 and later want them, by RFC 5280.
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()),
                critical=False,
            )
        )
        if is_authority:
            builder = builder.add_extension(SIGNS_CERTIFICATES, critical=True)
        else:
            address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
            builder = builder.add_extension(x509.SubjectAlternativeName([address]), critical=False)
        return builder.sign(self.key, hashes.SHA256())


SIGNS_CERTIFICATES = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=False,
    encipher_only=False,
    decipher_only=False,
)


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes
    certificate: str = ""
    """The name in the server's certificate."""


class Client:
    """One connection to an endpoint."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def ask(self, path: str = "/metrics", method: str = "GET", **headers: str) -> Answer:
        """Send one request; return its answer, as the bytes came."""
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        await self.send("\r\n".join([*lines, "", ""]).encode())
        return await self.answer(has_body=method != "HEAD")

    async def answer(self, *, has_body: bool = True) -> Answer:
        async with asyncio.timeout(TIMEOUT_S):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
            status, *lines = head.strip().split("\r\n")
            headers = dict(line.split(": ", 1) for line in lines)
            size = int(headers.get("Content-Length", 0)) if has_body else 0
            body = await self.reader.readexactly(size)
        return Answer(int(status.split()[1]), headers, body, self._certificate())

    async def closed(self) -> bytes:
        """Wait until the server has closed; return what it said before."""
        async with asyncio.timeout(TIMEOUT_S):
            try:
                return await self.reader.read()
            except ConnectionError:  # cut, not closed
                return b""

    def _certificate(self) -> str:
        peer = self.writer.get_extra_info("peercert") or {}
        return str(dict(pair for (pair,) in peer.get("subject", ())).get("commonName", ""))


Connect = Callable[..., contextlib.AbstractAsyncContextManager[Client]]


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def connect() -> Connect:
    """Connects to a URL; closed at the end of the block."""

    @contextlib.asynccontextmanager
    async def connected(
        url: str, context: ssl.SSLContext | None = None, **options: Any
    ) -> AsyncIterator[Client]:
        host, port = url.split("//")[1].rsplit(":", 1)
        reader, writer = await asyncio.open_connection(host, int(port), ssl=context, **options)
        try:
            yield Client(reader, writer)
        finally:
            writer.close()
            with contextlib.suppress(OSError):  # the server may have cut it
                await writer.wait_closed()

    return connected


@pytest.fixture
def until() -> Callable[[Callable[[], bool]], Awaitable[None]]:
    """Waits for what no event tells of; a test that waits in vain fails."""

    async def wait(happened: Callable[[], bool]) -> None:
        async with asyncio.timeout(TIMEOUT_S):
            while not happened():  # noqa: ASYNC110 (see above)
                await asyncio.sleep(0.01)

    return wait


@pytest.fixture
def trusting(authority: Authority) -> Callable[..., ssl.SSLContext]:
    """Makes a client's context that trusts the authority, with the certificate given."""

    def make(certificate: tuple[Path, Path] | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=authority.file)
        if certificate:
            context.load_cert_chain(*certificate)
        return context

    return make


@pytest.fixture
def web_config(tmp_path: Path) -> Callable[[str], Path]:
    """Writes a web configuration file."""

    def write(text: str) -> Path:
        file = tmp_path / "web.yml"
        file.write_text(text)
        return file

    return write


@pytest.fixture
def run_on_uvloop() -> Callable[..., Any]:
    """Runs a coroutine on a loop of uvloop's."""
    import uvloop

    def run(main: Any) -> Any:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(main)

    return run
