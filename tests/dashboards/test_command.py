"""``vramscope dashboards``, as people and scripts run it, and the folder for Grafana."""

import json
from pathlib import Path

import pytest
import yaml

pytest.importorskip("grafanalib")

from vramscope.dashboards.build import FOLDER, files
from vramscope.dashboards.command import main
from vramscope.exporters.errors import VramscopeError

PROVISIONING = FOLDER.parent / "provisioning"


def test_built_files_pass_the_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "new" / "folder"
    assert main(["build", "-o", str(folder)]) == 0
    assert capsys.readouterr().out == f"6 dashboards in {folder}\n"
    assert main(["check", "-o", str(folder)]) == 0


def test_stale_or_missing_file_is_named(tmp_path: Path) -> None:
    main(["build", "-o", str(tmp_path)])
    (tmp_path / "vramscope-lora.json").write_text("{}")
    (tmp_path / "vramscope-vram.json").unlink()
    with pytest.raises(VramscopeError, match=r"vramscope-vram\.json, vramscope-lora\.json missing"):
        main(["check", "-o", str(tmp_path)])


def test_committed_files_pass_the_check() -> None:
    assert main(["check"]) == 0


def test_folder_that_can_not_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(VramscopeError, match="want a folder to write to"):
        main(["build", "-o", str(tmp_path / "file" / "in-it")])


def test_config_maps_hold_each_dashboard_for_the_sidecar(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(["configmap", "--namespace", "monitoring"])
    documents = list(yaml.safe_load_all(capsys.readouterr().out))
    held = {name: text for one in documents for name, text in one["data"].items()}
    assert held == files()
    for one in documents:
        assert one["kind"] == "ConfigMap"
        assert one["metadata"]["namespace"] == "monitoring"
        assert one["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert len(json.dumps(one)) < 1_000_000  # a ConfigMap's limit


def test_provisioning_folder_is_what_grafana_reads() -> None:
    (source,) = yaml.safe_load((PROVISIONING / "datasources/vramscope.yaml").read_text())[
        "datasources"
    ]
    assert source["type"] == "prometheus"
    (provider,) = yaml.safe_load((PROVISIONING / "dashboards/vramscope.yaml").read_text())[
        "providers"
    ]
    assert provider["type"] == "file"
    assert Path(provider["options"]["path"]).is_absolute()
