"""The web configuration file: exporter-toolkit's, with every mistake told at once."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from vramscope.exporters.errors import VramscopeError
from vramscope.exporters.exposition.tls_settings import TlsSettings
from vramscope.exporters.exposition.web_config import WebConfig, read_web_config

HASH = "$2y$10$EYxs8IOG46m9CtpB/XlPxO1ei7E4BjAen0SUv6di7mD4keR/8JO6m"
Write = Callable[[str], Path]


@pytest.mark.parametrize("text", ["", "# nothing\n", "tls_server_config:\nhttp_server_config:\n"])
def test_empty_file_serves_in_the_clear_to_anybody(web_config: Write, text: str) -> None:
    assert read_web_config(web_config(text)) == WebConfig()


def test_all_that_a_file_may_say(web_config: Write, tmp_path: Path) -> None:
    for name in ("server.pem", "server.key", "ca.pem"):
        (tmp_path / name).touch()
    file = web_config(f"""\
tls_server_config:
  cert_file: server.pem
  key_file: {tmp_path}/server.key
  client_ca_file: ca.pem
  client_auth_type: RequireAndVerifyClientCert
  min_version: TLS12
  max_version: TLS12
  cipher_suites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, TLS_AES_128_GCM_SHA256]
  prefer_server_cipher_suites: true
http_server_config:
  http2: true
  headers: {{Strict-Transport-Security: max-age=1, X-Frame-Options: deny}}
basic_auth_users:
  ada: {HASH}
""")
    assert read_web_config(file) == WebConfig(
        TlsSettings(
            cert_file=tmp_path / "server.pem",
            key_file=tmp_path / "server.key",
            client_ca_file=tmp_path / "ca.pem",
            client_auth_type="RequireAndVerifyClientCert",
            min_version="TLS12",
            max_version="TLS12",
            cipher_suites=("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256"),
        ),
        {"Strict-Transport-Security": "max-age=1", "X-Frame-Options": "deny"},
        {"ada": HASH},
    )


def test_all_mistakes_are_told_at_once_each_with_its_place(web_config: Write) -> None:
    file = web_config("""\
tls_server_config:
  cert_file: gone.pem
  client_auth_type: RequireAnyClientCert
  min_version: TLS14
  cipher_suites: [TLS_RSA_WITH_RC4_128_SHA]
  client_allowed_sans: [x]
http_server_config:
  headers:
    X-Frame-Options: maybe
    Server: mine
basic_auth_users:
  ada: secret
  "a:b": secret
more: 1
""")
    with pytest.raises(VramscopeError) as raised:
        read_web_config(file)
    told = str(raised.value).splitlines()
    wanted = [
        "more: unknown or not supported here: want one of tls_server_config, ",
        "tls_server_config.client_allowed_sans: unknown or not supported here: ",
        "tls_server_config.cert_file = 'gone.pem': want a PEM file that is there, relative to /",
        "tls_server_config.key_file: missing: want a PEM file",
        "tls_server_config.client_auth_type = 'RequireAnyClientCert': want one of NoClientCert, ",
        "tls_server_config.min_version = 'TLS14': want one of TLS10, ",
        "tls_server_config.min_version = 'TLS14': want it no higher than max_version, TLS13",
        "tls_server_config.cipher_suites[0] = 'TLS_RSA_WITH_RC4_128_SHA': want one of TLS_ECDHE_",
        "http_server_config.headers.Server: unknown or not supported here: want one of ",
        "http_server_config.headers.X-Frame-Options = 'maybe': want one of deny, sameorigin",
        "basic_auth_users.ada: want a bcrypt hash",
        "basic_auth_users.a:b: want a user name without ':'",
        "basic_auth_users.a:b: want a bcrypt hash",
    ]
    assert len(told) == len(wanted)
    for line, start in zip(told, wanted, strict=True):
        assert line.startswith(f"{file}: {start}")
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("- a\n", "web.yml: want a mapping"),
        ("a: [\n", "web.yml:2:1: not YAML: "),
        ("a: \x01\n", "web.yml: not YAML: "),
        ("tls_server_config: on\n", "tls_server_config = True: want a mapping"),
        ("basic_auth_users: [ada]\n", "basic_auth_users = ['ada']: want a mapping"),
        ("http_server_config:\n  headers: {X-XSS-Protection: 1}\n", "= 1: want text on one line"),
    ],
)
def test_file_that_is_no_configuration_says_where(
    web_config: Write, text: str, complaint: str
) -> None:
    with pytest.raises(VramscopeError, match=re.escape(complaint)):
        read_web_config(web_config(text))


def test_missing_file_says_what_is_wanted(tmp_path: Path) -> None:
    with pytest.raises(VramscopeError, match=r"none\.yml: No such file .* want a readable YAML"):
        read_web_config(tmp_path / "none.yml")


@pytest.mark.parametrize(
    ("client_auth", "authority", "complaint"),
    [
        ("RequireAndVerifyClientCert", "", "client_ca_file: missing: want a PEM file"),
        ("VerifyClientCertIfGiven", "", "client_ca_file: missing: want a PEM file"),
        ("NoClientCert", "client_ca_file: x.pem", "want RequireAndVerifyClientCert, or no client"),
    ],
)
def test_authority_and_client_certificates_go_together(
    web_config: Write, tmp_path: Path, client_auth: str, authority: str, complaint: str
) -> None:
    (tmp_path / "x.pem").touch()
    lines = ["cert_file: x.pem", "key_file: x.pem", f"client_auth_type: {client_auth}", authority]
    file = web_config("tls_server_config:\n" + "".join(f"  {line}\n" for line in lines))
    with pytest.raises(VramscopeError, match=complaint):
        read_web_config(file)


def test_hashes_are_not_shown(web_config: Write) -> None:
    config = read_web_config(web_config(f"basic_auth_users:\n  ada: {HASH}\n"))
    assert config.users == {"ada": HASH}
    assert HASH not in repr(config)
