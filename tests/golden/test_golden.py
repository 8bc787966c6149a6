"""What is rendered of the example configs, byte for byte.

`python -m pytest tests/golden --update-golden` rewrites the expected files; review the difference.
The vendored modules are compared with their sources instead of being kept a second time.
"""

import json
from pathlib import Path

import pytest

from reconciler.config.loader import load_config
from reconciler.gitops.rendering.assets import MODULES, module_sources
from reconciler.gitops.rendering.render import RenderedFile, render
from reconciler.gitops.rendering.root_module import root_module_of
from reconciler.gitops.rendering.write import write_rendered
from tests.terraform.program import find_terraform

HERE = Path(__file__).parent
CONFIGS = sorted((HERE / "configs").glob("*.yaml"))
KEPT = ("fleets.auto.tfvars.json", "main.tf", "outputs.tf", "versions.tf")
by_name = pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.stem)


def rendered_from(config: Path) -> tuple[RenderedFile, ...]:
    """The files for an example config; one that names no cluster is given a name."""
    loaded = load_config(config)
    return render(root_module_of(loaded, cluster_name=loaded.cluster or "kluster"))


@by_name
def test_rendered_config_is_as_kept(config: Path, update_golden: bool) -> None:
    """A changed byte is a change of somebody's infrastructure: it must be seen in review."""
    kept = HERE / "rendered" / config.stem
    files = {file.path: file.content for file in rendered_from(config)}
    if update_golden:
        kept.mkdir(parents=True, exist_ok=True)
        for name in KEPT:
            (kept / name).write_bytes(files[name])
    assert {name: files[name].decode() for name in KEPT} == {
        name: (kept / name).read_text("utf-8") for name in KEPT
    }
    modules = {f"modules/{m}/{n}": c for m in MODULES for n, c in module_sources(m).items()}
    assert {path: files[path] for path in files if path.startswith("modules/")} == modules


@by_name
def test_config_rendered_twice_is_the_same_bytes(config: Path) -> None:
    """Bytes that differ without a cause make the second loop commit for ever."""
    assert rendered_from(config) == rendered_from(config)


@pytest.mark.terraform
@by_name
def test_rendered_config_is_formatted_and_valid(config: Path, tmp_path: Path) -> None:
    """A root that does not validate stops the pipeline of every config."""
    terraform = find_terraform()
    write_rendered(rendered_from(config), tmp_path)
    formatted = terraform.run(tmp_path, "fmt", "-check", "-recursive", "-diff")
    assert formatted.returncode == 0, formatted.stdout
    terraform.init(tmp_path)
    validated = terraform.run(tmp_path, "validate")
    assert validated.returncode == 0, validated.stderr


def test_hostile_texts_are_kept_as_they_were_written() -> None:
    """The kept file itself must not have been written by a renderer that changes texts."""
    kept = json.loads((HERE / "rendered/hostile/fleets.auto.tfvars.json").read_text("utf-8"))
    assert kept["fleets"]["primary-small"]["tags"] == {
        "interpolation": '${file("/etc/passwd")}',
        "escaped": "$${x} %%{y}",
        "directive": "%{ for x in [1] }%{ endfor }",
        "quotes": "\"double\" 'single' `back`",
        "backslashes": "\\n \\u0041 \\\\ \\",
        "shell": "$(id) ; | & < >",
        "unicode": "ünïcode 日本 😀",
        "${key}": "value",
        "empty": "",
        "yes": "on",
        "number": "0123",
    }


def test_kept_folders_are_those_of_the_configs() -> None:
    """A folder without its config is never checked again."""
    kept = sorted(path.name for path in (HERE / "rendered").iterdir())
    assert kept == [config.stem for config in CONFIGS]
