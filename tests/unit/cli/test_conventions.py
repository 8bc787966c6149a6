"""What holds for every command, so that whoever knows one knows all."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.cli import commands
from reconciler.cli.main import run
from tests.unit.config.documents import with_fleets

NAMES_OTHER_THINGS = {
    "explain pod": "its arguments are what is asked about",
    "explain node": "likewise",
    "explain fleet": "likewise",
    "gitops": "its configs are in the repository, and may be several",
    "import": "the config is one to complete",
    "ci plan": "the config is that of the folder's root",
    "ci apply": "likewise",
    "ci drift": "likewise",
    "ci finish": "likewise",
    "ci roots": "its configs may be several",
}
"""Commands with `--config` whose first argument is none."""


def all_commands() -> Iterator[tuple[str, Any]]:
    """Every command and sub-command that does something, with its name."""
    for name in commands.COMMANDS:
        command = commands.load_command(name)
        parts = getattr(command, "commands", {})
        yield from ((f"{name} {part}", each) for part, each in parts.items())
        if not parts:
            yield name, command


COMMANDS = dict(all_commands())


def options(name: str) -> dict[str, Any]:
    """The parameters of a command by their option."""
    return {option: each for each in COMMANDS[name].params for option in each.opts}


@pytest.mark.parametrize("name", COMMANDS)
def test_help_ends_with_an_example(name: str) -> None:
    """Most people read the last line of a help first."""
    example = COMMANDS[name].epilog.partition("Example:")[2]
    assert f"reconciler {name}" in " ".join(example.split())


@pytest.mark.parametrize("name", [name for name in COMMANDS if "--config" in options(name)])
def test_config_is_also_the_first_argument(name: str) -> None:
    """`reconciler plan sectors.yaml` is what people type."""
    arguments = [each for each in COMMANDS[name].params if each.param_type_name == "argument"]
    assert any(each.name == "config_file" for each in arguments) != (name in NAMES_OTHER_THINGS)


@pytest.mark.parametrize("name", [name for name in COMMANDS if "--kubeconfig" in options(name)])
def test_kubeconfig_comes_with_its_context(name: str) -> None:
    """A wrong context is the most expensive mistake there is."""
    assert "--context" in options(name)


@pytest.mark.parametrize("name", [name for name in COMMANDS if "--output" in options(name)])
def test_form_of_data_is_chosen_alike(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever knows `kubectl -o yaml` tries it."""
    assert run([*name.split(), "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "-o, --output <table|json|yaml>" in shown or "[table|json|yaml]" in shown


def test_yaml_says_what_json_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two forms of one answer must not differ."""
    file = tmp_path / "sectors.yaml"
    file.write_text("bogus: 1\n" + with_fleets("{size: small}"))
    assert run(["validate", str(file), "--output", "json"]) == 2
    as_json = json.loads(capsys.readouterr().out)
    assert run(["validate", "--config", str(file), "-o", "yaml"]) == 2
    assert yaml.safe_load(capsys.readouterr().out) == as_json


def test_two_configs_are_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One of them would be passed over."""
    assert run(["validate", "a.yaml", "--config", str(tmp_path / "b.yaml")]) == 2
    assert "give one of them" in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_version_is_told(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The first thing that a bug report needs."""
    assert run([flag]) == 0
    assert capsys.readouterr().out.startswith("fleet-reconciler ")
