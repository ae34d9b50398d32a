"""A real Prometheus with a certificate and a password, while ours is replaced."""

import json
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import bcrypt
import pytest
import yaml

TIMEOUT_S = 60.0
FAILED = "count_over_time(up[5m]) - sum_over_time(up[5m])"


@contextmanager
def running(*command: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, text=True, **options)
    try:
        yield process
        process.terminate()
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.communicate()


class Prometheus:
    def __init__(self, url: str) -> None:
        self.url = url

    def value(self, expression: str) -> float | None:
        """Return the one value of an instant query; None while there is none."""
        asked = urllib.parse.urlencode({"query": expression})
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/query?{asked}", timeout=10) as answer:
                rows = json.load(answer)["data"]["result"]
        except urllib.error.URLError:
            return None  # not listening yet
        return float(rows[0]["value"][1]) if rows else None

    def wait_for(self, expression: str) -> None:
        """Wait until the query has a value."""
        deadline_s = time.monotonic() + TIMEOUT_S
        while self.value(expression) is None:
            assert time.monotonic() < deadline_s, (expression, self.value("up"))
            time.sleep(0.1)


def web_config(file: Path, certificate: tuple[Path, Path], authority: Path, hashed: str) -> None:
    tls = {
        "cert_file": str(certificate[0]),
        "key_file": str(certificate[1]),
        "client_ca_file": str(authority),
        "client_auth_type": "RequireAndVerifyClientCert",
    }
    file.write_text(
        yaml.safe_dump({"tls_server_config": tls, "basic_auth_users": {"prometheus": hashed}})
    )


def wait_for_certificate(target: str, context: ssl.SSLContext, name: str) -> None:
    """Wait until new connections are shown the certificate of that name."""
    host, port = target.split(":")
    deadline_s = time.monotonic() + TIMEOUT_S
    while True:
        with (
            socket.create_connection((host, int(port)), timeout=10) as plain,
            context.wrap_socket(plain, server_hostname=host) as secure,
        ):
            shown = str(secure.getpeercert())
        if f"'{name}'" in shown:
            return
        assert time.monotonic() < deadline_s, shown
        time.sleep(0.05)


@pytest.fixture
def hashed() -> str:
    """A hash that costs what real ones do."""
    return bcrypt.hashpw(b"secret", bcrypt.gensalt(10)).decode()


def test_prometheus_misses_no_scrape_while_the_certificate_is_replaced(
    prometheus: str,
    free_port: Callable[[], int],
    authority: Any,
    trusting: Callable[..., ssl.SSLContext],
    tmp_path: Path,
    hashed: str,
) -> None:
    config = tmp_path / "web.yml"
    web_config(config, authority.issue("first"), authority.file, hashed)
    client = authority.issue("prometheus")
    export = ("export", "--listen", "127.0.0.1:0", "--run-dir", str(tmp_path))
    options = ("--gpu-source", "none", "--web-config-file", str(config))
    command = (sys.executable, "-m", "vramscope.exporters.cli", *export, *options)
    with running(*command, stdout=subprocess.PIPE) as exporter:
        assert exporter.stdout is not None
        target = exporter.stdout.readline().split("https://")[1].split("/")[0]
        job = {
            "job_name": "vramscope",
            "scheme": "https",
            "scrape_interval": "500ms",
            "scrape_timeout": "500ms",
            "static_configs": [{"targets": [target]}],
            "basic_auth": {"username": "prometheus", "password": "secret"},
            "tls_config": {
                "ca_file": str(authority.file),
                "cert_file": str(client[0]),
                "key_file": str(client[1]),
            },
        }
        (tmp_path / "prometheus.yml").write_text(yaml.safe_dump({"scrape_configs": [job]}))
        address = f"127.0.0.1:{free_port()}"
        arguments = (
            f"--config.file={tmp_path / 'prometheus.yml'}",
            f"--storage.tsdb.path={tmp_path / 'data'}",
            f"--web.listen-address={address}",
        )
        with running(prometheus, *arguments, stdout=subprocess.DEVNULL):
            asked = Prometheus(f"http://{address}")
            asked.wait_for("vramscope_build_info and on() up == 1")
            # A scrape that came while the password was checked the first time may have failed.
            failed_before = asked.value(FAILED)
            for name in ("second", "third"):
                web_config(config, authority.issue(name), authority.file, hashed)
                exporter.send_signal(signal.SIGHUP)
                wait_for_certificate(target, trusting(client), name)
                scrapes = asked.value("count_over_time(up[5m])")
                asked.wait_for(f"count_over_time(up[5m]) > {scrapes} + 3")
            assert asked.value(FAILED) == failed_before
