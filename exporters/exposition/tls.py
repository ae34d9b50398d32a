"""TLS settings as the context that connections are wrapped with."""

import ssl

from vramscope.exporters.errors import VramscopeError
from vramscope.exporters.exposition.cipher_suites import OPENSSL_NAMES
from vramscope.exporters.exposition.tls_settings import TlsSettings

__all__ = ["tls_context"]

VERSIONS = {
    "TLS10": ssl.TLSVersion.TLSv1,
    "TLS11": ssl.TLSVersion.TLSv1_1,
    "TLS12": ssl.TLSVersion.TLSv1_2,
    "TLS13": ssl.TLSVersion.TLSv1_3,
}
VERIFY_MODES = {
    "NoClientCert": ssl.CERT_NONE,
    # Asked for but never looked at, nor could we: whether to send one is the client's choice.
    "RequestClientCert": ssl.CERT_NONE,
    "VerifyClientCertIfGiven": ssl.CERT_OPTIONAL,
    "RequireAndVerifyClientCert": ssl.CERT_REQUIRED,
}


def tls_context(settings: TlsSettings) -> ssl.SSLContext:
    """Return a server's context; reads the certificate, the key and the clients' authority.

    Raises:
        VramscopeError: a file can't be read, is no PEM, or the key is another certificate's.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = VERSIONS[settings.min_version]
    context.maximum_version = VERSIONS[settings.max_version]
    context.verify_mode = VERIFY_MODES[settings.client_auth_type]
    context.set_alpn_protocols(["http/1.1"])
    suites = [OPENSSL_NAMES[name] for name in settings.cipher_suites if name in OPENSSL_NAMES]
    if suites:
        context.set_ciphers(":".join(suites))
    files = f"{settings.cert_file} and {settings.key_file}"
    try:
        # A password prompt would stop the exporter: an encrypted key is refused.
        context.load_cert_chain(settings.cert_file, settings.key_file, password=_no_password)
    except (OSError, ValueError) as error:
        raise VramscopeError(
            f"{files}: {_reason(error)}: want a PEM certificate chain and its own key, unencrypted"
        ) from error
    if settings.client_ca_file:
        try:
            context.load_verify_locations(settings.client_ca_file)
        except OSError as error:
            raise VramscopeError(
                f"{settings.client_ca_file}: {_reason(error)}: want PEM certificates"
            ) from error
    return context


def _no_password() -> str:
    raise ValueError("the key is encrypted")


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return error.reason or str(error)
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
