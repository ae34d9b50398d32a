"""The rule of conftest.py: CI skips nothing in silence."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"


def run(folder: Path, test: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    shutil.copy(CONFTEST, folder)
    (folder / "test_it.py").write_text(f"import pytest\n{test}\n")
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "--rootdir",
            folder,
            folder,
        ],
        env={**environment, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


SKIPS = {
    "in a test": "def test_it():\n    pytest.skip('no promtool here')",
    "by a mark": "@pytest.mark.skip(reason='no promtool here')\ndef test_it(): pass",
    "of a module": "pytest.skip('no promtool here', allow_module_level=True)",
    "in a fixture": (
        "@pytest.fixture\ndef tool(): pytest.skip('no promtool here')\ndef test_it(tool): pass"
    ),
}


@pytest.mark.parametrize("test", SKIPS.values(), ids=SKIPS)
def test_a_skip_fails_in_ci_and_nowhere_else(tmp_path: Path, test: str) -> None:
    in_ci = run(tmp_path, test, CI="true")
    assert in_ci.returncode in (1, 2), in_ci.stdout
    assert "no promtool here" in in_ci.stdout
    elsewhere = run(tmp_path, test)
    assert elsewhere.returncode in (0, 5), elsewhere.stdout
    assert "1 skipped" in elsewhere.stdout


def test_a_gpu_may_be_missing_in_ci(tmp_path: Path) -> None:
    done = run(tmp_path, "def test_it():\n    pytest.skip('needs a GPU')", CI="true")
    assert done.returncode == 0, done.stdout


def test_an_expected_failure_is_no_skip(tmp_path: Path) -> None:
    done = run(tmp_path, "@pytest.mark.xfail\ndef test_it(): assert False", CI="true")
    assert done.returncode == 0, done.stdout
    assert "1 xfailed" in done.stdout
