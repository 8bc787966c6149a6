"""Finds the templates and Terraform modules that ship with the program.

In the wheel they lie in `reconciler/_assets`, in a source tree beside the package.
"""

from collections.abc import Iterable
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from reconciler.model.errors import InvariantViolated

MODULES = ("eks_fleet", "eks_group", "fleets")
"""The modules that a rendered root needs, as folders of `terraform/`."""


def assets_root() -> Traversable:
    """Return the folder that has `templates/` and `terraform/`."""
    package = files("reconciler")
    return first_with_assets((package / "_assets", Path(__file__).parents[3]))


def first_with_assets(candidates: Iterable[Traversable]) -> Traversable:
    """Return the first of the folders that has the assets.

    Raises:
        InvariantViolated: None has: the program was installed without them.
    """
    for candidate in candidates:
        if candidate.joinpath("templates", "root").is_dir():
            return candidate
    raise InvariantViolated(
        "installation", "templates and Terraform modules are missing", "install the wheel again"
    )


def read_template(name: str) -> str:
    """Return the text of `templates/<name>`, such as `root/main.tf.j2`."""
    return assets_root().joinpath("templates", *name.split("/")).read_text(encoding="utf-8")


def read_policy(name: str) -> str:
    """Return the text of an IAM policy of the reconciler module, such as `capacity_loop`."""
    folder = assets_root().joinpath("terraform", "reconciler", "policies")
    return folder.joinpath(f"{name}.json").read_text(encoding="utf-8")


def module_sources(module: str) -> dict[str, bytes]:
    """Return the `.tf` files of one module by file name, sorted, without tests and README."""
    folder = assets_root().joinpath("terraform", module)
    sources = {
        entry.name: entry.read_bytes()
        for entry in folder.iterdir()
        if entry.is_file() and entry.name.endswith(".tf")
    }
    return dict(sorted(sources.items()))


def example_files(name: str) -> dict[str, bytes]:
    """Return the files of one folder of examples by name, sorted."""
    root = assets_root()
    folder = root.joinpath("examples", name)
    if not folder.is_dir():
        folder = root.joinpath("docs", "examples", name)
    return {
        entry.name: entry.read_bytes()
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
        if entry.is_file()
    }
