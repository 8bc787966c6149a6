"""The sandbox's own packages, which a plain installation does not bring."""

from importlib.util import find_spec

from reconciler.model.errors import ToolError

PACKAGES = ("moto", "werkzeug", "cryptography")


def check_packages(packages: tuple[str, ...] = PACKAGES) -> None:
    """Check that the packages are installed, before anything is started.

    Raises:
        ToolError: One is not installed.
    """
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        raise ToolError(
            "sandbox",
            f"needs packages that are not installed: {', '.join(missing)}",
            "pip install 'fleet-reconciler[sandbox]'",
        )
