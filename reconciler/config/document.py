"""A sector config as plain data, for programs that complete one and write it again.

Scalars keep the text that people wrote: `8:00` stays a time, `1.0` stays `1.0`. Comments go.
"""

from collections.abc import Mapping
from typing import Any, Final

import yaml

from reconciler.config import yaml_loader
from reconciler.config.tree import UnquotedText, to_data
from reconciler.model.errors import ConfigError

WIDTH: Final = 100


def read_document(content: bytes, *, name: str = "<config>") -> Mapping[str, Any]:
    """Return the keys of a config as written, `UnquotedText` for unquoted scalars.

    Raises:
        ConfigError: It is no YAML mapping within bounds.
    """
    try:
        root, _ = yaml_loader.compose(yaml_loader.decode(content))
    except yaml_loader.Unreadable as error:
        raise ConfigError(name, (error.problem,)) from None
    document = to_data(root)
    return document if isinstance(document, dict) else {}


def write_document(document: Mapping[str, Any]) -> str:
    """Return the document as YAML that reads as the same document, keys in their order."""
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=WIDTH)


def with_stated_keys(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a config without the keys that have no value, which count as missing there.

    That is so in the config itself, its sectors, its fleets and their module variables. What people
    name themselves, such as tags, stays.
    """
    stated = _section(document)
    sectors = stated.get("sectors")
    if isinstance(sectors, Mapping):
        stated["sectors"] = {name: _sector(each) for name, each in sectors.items()}
    return stated


def _sector(sector: Any) -> Any:
    if not isinstance(sector, Mapping):
        return sector
    stated = _section(sector)
    if isinstance(fleets := stated.get("fleets"), list):
        stated["fleets"] = [_section(e) if isinstance(e, Mapping) else e for e in fleets]
    return stated


def _section(section: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a section that have a value, and those of its module variables."""
    stated = {key: value for key, value in section.items() if not _is_null(value)}
    if isinstance(variables := stated.get("terraform"), Mapping):
        stated["terraform"] = {k: v for k, v in variables.items() if not _is_null(v)}
    return stated


def _is_null(value: object) -> bool:
    return isinstance(value, UnquotedText) and value.is_null


_LINE_ENDS: Final = frozenset("\x85\u2028\u2029")


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - its signature
        """Write no anchors or aliases."""
        return True


def _plain(dumper: yaml.SafeDumper, text: UnquotedText) -> yaml.ScalarNode:
    """Without quotes, as it was written."""
    resolver: Any = dumper
    tag = resolver.resolve(yaml.ScalarNode, str(text), (True, False))
    return yaml.ScalarNode(tag, str(text))


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """In double quotes if it has a character that YAML 1.1 reads as the end of a line."""
    style = '"' if set(text) & _LINE_ENDS else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(UnquotedText, _plain)
