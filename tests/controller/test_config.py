"""vramscope.yaml: what is accepted, and that every mistake is said, at once, with its place."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from vramscope.controller.config_docs import configuration_markdown
from vramscope.controller.errors import ConfigError
from vramscope.controller.load import load

Written = Callable[[str], Path]
ROOT = Path(__file__).parents[2]
ONE = "engines: [{name: a, model: org/tiny}]\n"


@pytest.fixture
def written(tmp_path: Path) -> Written:
    def write(text: str) -> Path:
        file = tmp_path / "vramscope.yaml"
        file.write_text(text, encoding="utf-8")
        return file

    return write


def mistakes(file: Path) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(file)
    return [line.removeprefix(f"{file}: ") for line in str(caught.value).splitlines()]


def test_the_smallest_file_gets_every_default(written: Written) -> None:
    config = load(written(ONE))
    assert (config.front_door.host, config.front_door.port) == ("127.0.0.1", 8080)
    assert (config.admin.host, config.admin.port) == ("127.0.0.1", 8081)
    assert config.policy == "seed"
    assert config.engines[0].served_name == "tiny"
    assert config.engines[0].port == 0


def test_paths_start_at_the_files_folder(written: Written, tmp_path: Path) -> None:
    (tmp_path / "models" / "tiny").mkdir(parents=True)
    config = load(
        written(
            "engines: [{name: a, model: ./models/tiny, adapters: {fr: ./models}}]\n"
            "run_dir: run\nlog_dir: /var/log/x\n"
        )
    )
    assert config.engines[0].model == str(tmp_path / "models" / "tiny")
    assert config.engines[0].served_name == "tiny"
    assert config.engines[0].adapters == {"fr": str(tmp_path / "models")}
    assert config.run_dir == str(tmp_path / "run")
    assert config.log_dir == "/var/log/x"


def test_numbers_in_args_and_env_are_text(written: Written) -> None:
    config = load(
        written("engines: [{name: a, model: m, args: [--max-model-len, 512, 0.5], env: {N: 1}}]")
    )
    assert config.engines[0].args == ("--max-model-len", "512", "0.5")
    assert config.engines[0].env == {"N": "1"}


def test_every_mistake_is_reported_at_once_with_its_place(written: Written) -> None:
    file = written(
        """
engines:
  - {name: a, model: ./gone, port: x, modle: b}
  - {name: B c, model: org/tiny, args: 3, adapters: {fr: ~/no/such/folder}}
  - {model: org/tiny, args: ["--port", 1, "--served_model_name=x"], env: {VRAMSCOPE_ENGINE: x}}
  - 7
front_door: {port: 70000}
admin: 8081
policy: sed
polciy: seed
startup_timeout_s: 0
drain_timeout_s: true
sense_period_s: fast
assumed_output_tokens: 1.5
max_request_bytes: 1
"""
    )
    said = mistakes(file)
    places = [re.split(r" = |: ", line)[0] for line in said]
    assert sorted(places) == sorted(
        [
            "engines[0].model",
            "engines[0].port",
            "engines[0].modle",
            "engines[1].name",
            "engines[1].args",
            "engines[1].adapters.fr",
            "engines[2].name",
            "engines[2].args[0]",
            "engines[2].args[2]",
            "engines[2].env.VRAMSCOPE_ENGINE",
            "engines[3]",
            "front_door.port",
            "admin",
            "policy",
            "polciy",
            "startup_timeout_s",
            "drain_timeout_s",
            "sense_period_s",
            "assumed_output_tokens",
            "max_request_bytes",
        ]
    )
    assert all("want " in line for line in said)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "engines: [{name: a, model: m, port: x}]",
            (
                "engines[0].port = 'x': want a port from 0 to 65535, where 0 picks a free one, "
                "e.g. 8001"
            ),
        ),
        (
            "engines: [{name: a, modle: m, model: m}]",
            (
                "engines[0].modle: unknown key: did you mean 'model'? want one of name, model, "
                "served_name, port, args, env, adapters"
            ),
        ),
        (
            "engines: [{name: a}]",
            (
                "engines[0].model: missing: want a hub id, or an existing path that starts with "
                "'/', './' or '~', e.g. ./models/tiny"
            ),
        ),
        (
            ONE + "policy: least",
            "policy = 'least': want one of seed, round-robin, least-request, e.g. seed",
        ),
        (
            "engines: []",
            (
                "engines = a list of 0: want a list of at least one engine, "
                "e.g. [{name: a, model: ./models/tiny}]"
            ),
        ),
        (
            "policy: seed",
            (
                "engines: missing: want a list of at least one engine, "
                "e.g. [{name: a, model: ./models/tiny}]"
            ),
        ),
        (
            ONE + "admin: {port: 8080}",
            "admin.port = 8080: want a port of its own: front_door.port has it",
        ),
        (
            "engines: [{name: a, model: m, port: 8081}]",
            "engines[0].port = 8081: want a port of its own: admin.port has it",
        ),
        (
            "engines: [{name: a, model: m}, {name: a, model: m}]",
            "engines[1].name = 'a': want a name of its own: engines[0] has it",
        ),
        (
            "engines: [{name: a, model: m}, {name: b, model: n, adapters: {m: org/x}}]",
            "engines[1].adapters.m: is also the served_name of a model: want a name of its own",
        ),
        (
            (
                "engines: [{name: a, model: m, adapters: {x: o/x}}, "
                "{name: b, model: n, adapters: {x: o/x}}]"
            ),
            "engines[1].adapters.x: adapts 'n' here and 'm' elsewhere: want one name a base model",
        ),
        (
            ONE + "policy: seed\nadmin: {port: 1,\n  port: 2}\npolicy: seed",
            (
                "admin.port: duplicate key on line 4, first on line 3: want it once\n"
                "policy: duplicate key on line 5, first on line 2: want it once"
            ),
        ),
        (
            "engines: [{name: a, model: m, name: b}]",
            "engines[0].name: duplicate key on line 1, first on line 1: want it once",
        ),
    ],
)
def test_a_mistake_says_what_was_seen_and_what_is_wanted(
    written: Written, text: str, line: str
) -> None:
    assert mistakes(written(text)) == line.splitlines()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", ": an empty file: want a mapping"),
        (b"- 1", ": a list of 1: want a mapping"),
        (b"a: [", ":1:5: not YAML: "),
        (b"a: !!python/object/apply:os.system [ls]", ":1:4: not YAML: could not determine"),
        (b"a: 2024-13-01", ": not YAML: "),
        (b"a: \x01", ": not YAML: unacceptable character"),
        (b"a: \xff", ": byte 3 is not UTF-8"),
    ],
)
def test_what_is_no_mapping_in_yaml_is_one_line(tmp_path: Path, content: bytes, says: str) -> None:
    file = tmp_path / "vramscope.yaml"
    file.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load(file)
    assert str(caught.value).startswith(f"{file}{says}")
    assert len(str(caught.value).splitlines()) == 1


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.yaml: No such file or directory: want a read"):
        load(tmp_path / "none.yaml")


def test_a_list_that_holds_itself_is_a_mistake_not_a_crash(written: Written) -> None:
    assert mistakes(written("engines: &e [*e]"))[0].startswith("engines[0] = a list of 1: want a ")


def test_an_engines_variables_are_never_shown(written: Written) -> None:
    said = mistakes(written("engines: [{name: a, model: m, env: {HF_TOKEN: [hf_secret], 1: x}}]"))
    assert [line.partition(":")[0] for line in said] == [
        "engines[0].env.HF_TOKEN = a list",
        "engines[0].env[1] = a int",
    ]
    said = mistakes(written("engines: {name: a, env: {HF_TOKEN: hf_secret}}"))
    assert "hf_secret" not in "".join(said)
    config = load(written("engines: [{name: a, model: m, env: {HF_TOKEN: hf_secret}}]"))
    assert "hf_secret" not in repr(config)


def test_engines_that_share_a_model_may_share_its_adapters(written: Written) -> None:
    config = load(
        written(
            "engines:\n"
            "- {name: a, model: m, adapters: {x: o/x}}\n"
            "- {name: b, model: m, adapters: {x: o/x}}\n"
        )
    )
    assert [engine.served_name for engine in config.engines] == ["m", "m"]


def test_the_documentation_is_current() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    fix = "run: python -m vramscope.controller.config_docs > docs/configuration.md"
    assert page == configuration_markdown(), fix
