"""Flags and environment over the file: flag beats environment beats file beats default."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from pydantic import ValidationError

from reconciler.config.base import Section
from reconciler.config.loader import Purpose, load_config, parse_config
from reconciler.config.rules import check_rules
from reconciler.config.rules.names import check_cluster_name
from reconciler.config.schema import SectorConfig
from reconciler.config.tree import Entry, Item, Node, Place, Scalar, Sequence, UnquotedText, to_data
from reconciler.config.tree import Mapping as MappingNode
from reconciler.model.errors import UsageError

SectionT = TypeVar("SectionT", bound=Section)
PREFIX: Final = "RECONCILER_"
_NOWHERE: Final = Place(line=0, column=0)
"""The place of values that come from a flag or a variable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A key of the config file that a flag and an environment variable may set too."""

    flag: str
    """Without dashes in front: `idle-threshold`."""
    path: tuple[str, ...]
    """Where the value stands in the file."""
    quoted: bool = False
    """Whether the value is a text whatever it looks like."""
    many: bool = False
    """Whether the value is a comma-separated list."""

    @property
    def variable(self) -> str:
        """Return the environment variable: `RECONCILER_IDLE_THRESHOLD`."""
        return PREFIX + self.flag.replace("-", "_").upper()


SETTINGS: Final = (
    Setting(flag="cluster-name", path=("cluster",), quoted=True),
    Setting(flag="regions", path=("regions",), many=True),
    Setting(flag="kubeconfig", path=("kubeconfig",), quoted=True),
    Setting(flag="context", path=("kube_context",), quoted=True),
    Setting(flag="catalogue", path=("catalogue",), quoted=True),
    Setting(flag="pod-namespace", path=("pod_namespace",), quoted=True),
    Setting(flag="idle-threshold", path=("scale_in", "idle_threshold")),
    Setting(flag="type-idle-threshold", path=("scale_in", "type_idle_threshold")),
    Setting(flag="instance-init-time", path=("instance_init_time",)),
    Setting(flag="sleep", path=("sleep_interval",)),
    Setting(flag="slack-hook", path=("notifications", "slack_hook"), quoted=True),
    Setting(flag="dry-run", path=("dry_run",)),
    Setting(flag="leader-elect", path=("leader_election", "enabled")),
    Setting(flag="lease-namespace", path=("leader_election", "namespace"), quoted=True),
    Setting(flag="verbosity", path=("verbosity",)),
    Setting(flag="listen", path=("listen",), quoted=True),
    Setting(flag="listen-token-file", path=("listen_token_file",), quoted=True),
)

Flags = Mapping[str, str | bool | int | None]
"""By flag (`idle-threshold`); None, False and 0 mean that the flag was not given."""


def load_with_overrides(
    path: str | Path,
    flags: Flags,
    environ: Mapping[str, str] | None = None,
    *,
    purpose: Purpose = Purpose.PLAN,
) -> SectorConfig:
    """Read a sector config and apply flags and environment to it.

    Args:
        path: The file; `-` is standard input.
        flags: What the command line gave.
        environ: The environment; default: this process's.
        purpose: What the config is read for.

    Raises:
        ConfigError: The file has faults (with the cluster's name in force).
        UsageError: A flag or variable has a bad value.
    """
    given = stated_values(flags, environ)
    cluster_name = cluster_name_of(given)
    config = load_config(path, cluster_name=cluster_name, purpose=purpose)
    directory = Path() if str(path) == "-" else Path(path).parent
    return apply_overrides(_with_catalogue_beside(config, directory), given)


def parse_with_overrides(
    content: bytes,
    flags: Flags,
    *,
    name: str,
    directory: Path | None,
    purpose: Purpose = Purpose.RUN,
) -> SectorConfig:
    """Read a sector config from its bytes and apply flags and environment to it.

    Args:
        content: The YAML.
        flags: What the command line gave.
        name: What to call it in messages.
        directory: Where `descheduler.policy_file` and `catalogue` are looked for, the folder of
            the config; None: the policy file is not read.
        purpose: What the config is read for.

    Raises:
        ConfigError: The config has faults (with the cluster's name in force).
        UsageError: A flag or variable has a bad value.
    """
    given = stated_values(flags)
    config = parse_config(
        content,
        name=name,
        cluster_name=cluster_name_of(given),
        directory=directory,
        purpose=purpose,
    )
    return apply_overrides(_with_catalogue_beside(config, directory), given)


def _with_catalogue_beside(config: SectorConfig, directory: Path | None) -> SectorConfig:
    """Return the config with the path of its catalogue as one of this process.

    The config names it relative to its own folder, flags and variables relative to the working
    directory.
    """
    if config.catalogue is None or directory is None:
        return config
    return config.model_copy(update={"catalogue": str(directory / config.catalogue)})


def stated_values(
    flags: Flags, environ: Mapping[str, str] | None = None
) -> dict[Setting, tuple[str, str]]:
    """Return what flags and environment state: by setting, who says it and what.

    Raises:
        KeyError: A flag that is not in `SETTINGS`; a mistake of the caller.
    """
    environ = os.environ if environ is None else environ  # noqa: TID251 - config reads it
    by_flag = {setting.flag: setting for setting in SETTINGS}
    given: dict[Setting, tuple[str, str]] = {}
    for setting in SETTINGS:
        if text := environ.get(setting.variable, "").strip():
            given[setting] = (setting.variable, text)
    for flag, value in flags.items():
        setting = by_flag[flag]
        if value is not None and value is not False and value != 0:
            text = "true" if value is True else str(value)
            given[setting] = (f"--{flag}", text)
    return given


def cluster_name_of(given: Mapping[Setting, tuple[str, str]]) -> str | None:
    """Return the cluster's name that flags or environment give.

    Raises:
        UsageError: It is no label value.
    """
    for setting, (source, text) in given.items():
        if setting.path == ("cluster",):
            check_cluster_name(text, source)
            return text
    return None


def stated_cluster_name(flag: str | None) -> str | None:
    """The cluster's name that `--cluster-name` or the environment gives; None: the config's counts.

    Raises:
        UsageError: It is no label value.
    """
    return cluster_name_of(stated_values({"cluster-name": flag}))


def apply_overrides(config: SectorConfig, given: Mapping[Setting, tuple[str, str]]) -> SectorConfig:
    """Return the config with the stated values in place of the file's.

    Raises:
        UsageError: A value is not what the key takes.
    """
    for setting, (source, text) in given.items():
        config = _updated(config, _parsed(setting, source, text))
    return config


def _parsed(setting: Setting, source: str, text: str) -> SectorConfig:
    """Return a config in which nothing but this value is stated, as a file would state it.

    Raises:
        UsageError: A file with this value would be refused.
    """
    root = _tree_of(setting, text)
    if root is None:
        raise UsageError(source, "is empty", "leave it out, or give it a value")
    try:
        config = SectorConfig.model_validate(to_data(root))
    except ValidationError as error:
        what = str(error.errors(include_url=False, include_input=False)[0]["msg"])
        raise UsageError(source, what) from None
    for problem in check_rules(root):
        raise UsageError(source, problem.message)
    return config


def _tree_of(setting: Setting, text: str) -> MappingNode | None:
    """Return the document that has only this value; None if the text is empty."""
    parts = [part.strip() for part in text.split(",")] if setting.many else [text]
    kind = str if setting.quoted else UnquotedText
    values = [Scalar(place=_NOWHERE, text=kind(part)) for part in parts if part.strip()]
    if not values:
        return None
    items = [Item(place=_NOWHERE, value=value) for value in values]
    node: Node = Sequence(place=_NOWHERE, items=items) if setting.many else values[0]
    for key in reversed(setting.path):
        node = MappingNode(place=_NOWHERE, entries={key: Entry(place=_NOWHERE, value=node)})
    return node if isinstance(node, MappingNode) else None


def _updated(base: SectionT, stated: SectionT) -> SectionT:
    """Return the values of `base`, but those that `stated` states."""
    update = {
        name: _updated(getattr(base, name), value) if isinstance(value, Section) else value
        for name, value in stated.given().items()
    }
    return base.model_copy(update=update)
