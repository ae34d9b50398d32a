"""The manifests of docs/kubernetes.md against what the code has."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from vramscope.exporters.engine import rundir
from vramscope.exporters.export import main
from vramscope.exporters.gpu.kubelet import DEFAULT_SOCKET

PAGE = (Path(__file__).parents[2] / "docs" / "kubernetes.md").read_text()


def manifests() -> dict[str, dict[str, Any]]:
    blocks = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return {manifest["kind"]: manifest for manifest in map(yaml.safe_load, blocks)}


def engine() -> dict[str, Any]:
    container: dict[str, Any] = manifests()["Pod"]["spec"]["containers"][0]
    return container


def exporter() -> dict[str, Any]:
    pod = manifests()["DaemonSet"]["spec"]["template"]["spec"]
    container: dict[str, Any] = pod["containers"][0]
    return container


def test_each_option_is_one_the_exporter_has(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    known = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    used = {argument for argument in exporter()["args"] if argument.startswith("--")}
    assert used
    assert used <= known


def test_each_variable_is_one_the_probe_reads() -> None:
    names = {variable["name"] for variable in engine()["env"]}
    assert names == {"POD_NAME", "VRAMSCOPE_ENGINE", rundir.VARIABLE}


def test_engine_writes_where_the_exporter_reads() -> None:
    (written,) = engine()["volumeMounts"]
    mounts = {mount["name"]: mount for mount in exporter()["volumeMounts"]}
    variables = {v["name"]: v.get("value") for v in engine()["env"]}
    assert variables[rundir.VARIABLE] == written["mountPath"]
    assert mounts["records"]["mountPath"] in exporter()["args"]
    assert written["subPathExpr"] == "$(POD_NAME)"
    assert manifests()["Pod"]["spec"]["volumes"][0]["hostPath"]["path"] == str(rundir.SYSTEM_FOLDER)


def test_exporter_writes_nothing_and_mounts_the_sockets_folder() -> None:
    mounts = {mount["name"]: mount for mount in exporter()["volumeMounts"]}
    assert all(mount["readOnly"] for mount in mounts.values())
    assert mounts["pod-resources"]["mountPath"] == str(DEFAULT_SOCKET.parent)
    assert exporter()["securityContext"]["capabilities"] == {"drop": ["ALL"]}


SERIES = {
    'vramscope_gpu_memory_bytes{gpu="0",uuid="GPU-a",kind="used",pod="p"}': 5,
    'vramscope_gpu_memory_bytes{gpu="1",uuid="GPU-b",kind="used",shared="true"}': 7,
    'vramscope_gpu_memory_bytes{gpu="1",uuid="GPU-b",kind="free",shared="true"}': 100,
    'vramscope_gpu_user_info{uuid="GPU-a",namespace="n",pod="p"}': 1,
    'vramscope_gpu_user_info{uuid="GPU-b",namespace="n",pod="p"}': 1,
    'vramscope_gpu_user_info{uuid="GPU-b",namespace="n",pod="q"}': 1,
    'vramscope_engine_gpu_info{engine="e",dp_rank="0",uuid="GPU-a",rank="0"}': 1,
    'vramscope_engine_gpu_info{engine="e",dp_rank="0",uuid="GPU-b",rank="1"}': 1,
    'vramscope_engine_gpu_info{engine="f",dp_rank="0",uuid="GPU-b"}': 1,
}
ANSWERS = (
    {'{namespace="n",pod="p"}': 12, '{namespace="n",pod="q"}': 7},
    {'{engine="e"}': 12, '{engine="f"}': 7},
)


def test_each_query_answers(promtool: str, tmp_path: Path) -> None:
    queries = re.findall(r"^```promql\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(queries) == len(ANSWERS)
    tests = [
        {
            "expr": query,
            "eval_time": "1m",
            "exp_samples": [{"labels": labels, "value": n} for labels, n in answer.items()],
        }
        for query, answer in zip(queries, ANSWERS, strict=True)
    ]
    series = [{"series": name, "values": f"{value}x5"} for name, value in SERIES.items()]
    file = tmp_path / "queries.yaml"
    group = {"interval": "1m", "input_series": series, "promql_expr_test": tests}
    file.write_text(yaml.safe_dump({"tests": [group]}))
    done = subprocess.run(
        [promtool, "test", "rules", file], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
