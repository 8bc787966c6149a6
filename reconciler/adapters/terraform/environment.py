"""What Terraform and its providers read outside of the root module: the environment and its files.

A checkout must not decide which program runs. So only named settings of Terraform are passed on,
its data directory and CLI config are this program's own, and files that other variables name must
not be in the checkout.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from reconciler.machine.work_tree import work_tree
from reconciler.model.errors import InputError

_KEPT = frozenset({"TF_LOG", "TF_LOG_CORE", "TF_LOG_PROVIDER", "TF_WORKSPACE"})
"""Settings that affect neither the plan nor where programs come from."""
_KEPT_PREFIXES = ("TF_TOKEN_",)
_PLACES = (
    "HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_CA_BUNDLE",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "TF_CLI_CONFIG_FILE",
    "TF_PLUGIN_CACHE_DIR",
    "RECONCILER_TERRAFORM_PLUGIN_DIR",
)
"""Files that these name can start a program (`credential_process`) or decide whom to trust."""
_READ_HERE = frozenset({"RECONCILER_TERRAFORM_PLUGIN_DIR"})
"""Read by this program alone, so that a relative path is relative to here and not to the module."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TerraformEnvironment:
    """One root module in the environment of this process."""

    users: Mapping[str, str]
    module: Path

    def assert_apart(self) -> None:
        """Raise InputError for a variable that names a file in the checkout."""
        for name in _PLACES:
            value = self.users.get(name, "")
            if value and self.is_inside(Path(value).absolute() if name in _READ_HERE else value):
                raise InputError(
                    name,
                    f"names {value!r}, which lies in the checkout: the repository would decide"
                    " what runs",
                    "name a place outside of it",
                )

    def is_inside(self, path: str | Path) -> bool:
        """Return whether a path is in the checkout, also when relative to here or the module."""
        module = self.module.resolve()
        # A link may lead out of the checkout that it is in.
        around = {work_tree(module), work_tree(self.module.absolute())} - {None}
        checkouts = {module, *(each.resolve() for each in around if each)}
        places = [Path(path).expanduser().resolve(), (self.module / path).resolve()]
        return any(place.is_relative_to(checkout) for place in places for checkout in checkouts)

    def environment(self, own: Path) -> Mapping[str, str | None]:
        """Return settings that make Terraform behave the same on a laptop and in a pipeline.

        Args:
            own: The directory of this run.

        Returns:
            By name; None: the variable is removed.
        """
        return {
            **dict.fromkeys(self._dropped()),
            "TF_IN_AUTOMATION": "1",
            "TF_INPUT": "0",
            "CHECKPOINT_DISABLE": "1",
            "TF_DATA_DIR": str(own / "data"),
            "TF_CLI_CONFIG_FILE": str(cli_config_file(own)),
        }

    def _dropped(self) -> Iterator[str]:
        """Yield Terraform's settings that would change the plan under review."""
        for name in self.users:
            kept = name in _KEPT or name.startswith(_KEPT_PREFIXES) or name == "TF_PLUGIN_CACHE_DIR"
            if name.startswith("TF_") and not kept:
                yield name


def cli_config_file(own: Path) -> Path:
    """Return the CLI config's path, in the run's own directory."""
    return own / "cli.tfrc"
