"""The web configuration's ``tls_server_config``: what it may say, and what is wrong with it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from vramscope.exporters.exposition.cipher_suites import OPENSSL_NAMES, TLS_1_3

__all__ = ["TLS_KEYS", "TlsSettings", "tls_problems", "tls_settings"]

TLS_KEYS = (
    "cert_file",
    "key_file",
    "client_ca_file",
    "client_auth_type",
    "min_version",
    "max_version",
    "cipher_suites",
    "prefer_server_cipher_suites",  # taken and ignored, as Go does
)
CLIENT_AUTH_TYPES = (
    "NoClientCert",
    "RequestClientCert",
    "VerifyClientCertIfGiven",
    "RequireAndVerifyClientCert",
)
"""Go's, less RequireAnyClientCert, which takes a certificate that nobody checks."""
TLS_VERSIONS = ("TLS10", "TLS11", "TLS12", "TLS13")


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """How connections are encrypted.

    Attributes:
        cert_file: certificate chain, PEM.
        key_file: its private key, PEM.
        client_ca_file: who signs clients' certificates, PEM.
        client_auth_type: one of ``CLIENT_AUTH_TYPES``.
        min_version: one of ``TLS_VERSIONS``.
        max_version: the same.
        cipher_suites: Go's names, for TLS 1.2 and below; empty for the library's choice.
    """

    cert_file: Path
    key_file: Path
    client_ca_file: Path | None = None
    client_auth_type: str = "NoClientCert"
    min_version: str = "TLS12"
    max_version: str = "TLS13"
    cipher_suites: tuple[str, ...] = ()


def tls_settings(given: Mapping[str, object], folder: Path) -> TlsSettings:
    """Return the settings of a section without problems.

    Args:
        given: the section.
        folder: where relative paths start.
    """
    client_ca = given.get("client_ca_file")
    suites = given.get("cipher_suites")
    return TlsSettings(
        cert_file=folder / str(given["cert_file"]),
        key_file=folder / str(given["key_file"]),
        client_ca_file=folder / str(client_ca) if client_ca else None,
        client_auth_type=str(given.get("client_auth_type") or "NoClientCert"),
        min_version=str(given.get("min_version") or "TLS12"),
        max_version=str(given.get("max_version") or "TLS13"),
        cipher_suites=tuple(map(str, suites)) if isinstance(suites, list) else (),
    )


def tls_problems(given: Mapping[str, object], folder: Path) -> Iterator[tuple[str, str]]:
    """Yield each key of the section that is wrong, and how."""
    yield from _file_problems(given, folder)
    yield from _client_auth_problems(given)
    yield from _version_problems(given)
    yield from _suite_problems(given.get("cipher_suites") or [])


def _file_problems(given: Mapping[str, object], folder: Path) -> Iterator[tuple[str, str]]:
    for key in ("cert_file", "key_file", "client_ca_file"):
        value = given.get(key)
        if value and not (isinstance(value, str) and (folder / value).is_file()):
            yield key, f" = {value!r}: want a PEM file that is there, relative to {folder}"
        elif not value and key != "client_ca_file":
            yield key, ": missing: want a PEM file"


def _client_auth_problems(given: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    client_auth = given.get("client_auth_type") or "NoClientCert"
    if client_auth not in CLIENT_AUTH_TYPES:
        wanted = ", ".join(CLIENT_AUTH_TYPES)
        yield "client_auth_type", f" = {client_auth!r}: want one of {wanted}"
    elif str(client_auth).startswith(("Verify", "RequireAnd")) and not given.get("client_ca_file"):
        yield "client_ca_file", f": missing: want a PEM file for {client_auth}"
    elif client_auth == "NoClientCert" and given.get("client_ca_file"):
        yield "client_auth_type", ": want RequireAndVerifyClientCert, or no client_ca_file"


def _version_problems(given: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    lowest, highest = (given.get("min_version") or "TLS12"), (given.get("max_version") or "TLS13")
    for key, version in (("min_version", lowest), ("max_version", highest)):
        if version not in TLS_VERSIONS:
            yield key, f" = {version!r}: want one of {', '.join(TLS_VERSIONS)}"
    if str(lowest) > str(highest):
        yield "min_version", f" = {lowest!r}: want it no higher than max_version, {highest}"


def _suite_problems(suites: object) -> Iterator[tuple[str, str]]:
    if not isinstance(suites, list):
        yield "cipher_suites", f" = {suites!r}: want a list"
        return
    known = (*OPENSSL_NAMES, *TLS_1_3)
    for index, suite in enumerate(suites):
        if suite not in known:
            yield f"cipher_suites[{index}]", f" = {suite!r}: want one of {', '.join(known)}"
