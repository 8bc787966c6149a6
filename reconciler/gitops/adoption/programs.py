"""Converts the config of k8s-spot-rescheduler and the descheduler into parts of a sector config.

Its input is what is applied to the cluster: Deployments and CronJobs with their flags, ConfigMaps
with a DeschedulerPolicy, or the policy file itself. A setting without a counterpart here is noted
with what happens to it; nothing is dropped silently.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from reconciler.config.descheduler import Descheduler
from reconciler.config.descheduler_policy import PolicyFileFaults, with_policy_file
from reconciler.config.document import read_document, write_document
from reconciler.config.loader import parse_config
from reconciler.config.tree import UnquotedText
from reconciler.gitops.adoption.program_flags import (
    DESCHEDULER_FLAGS,
    DESCHEDULER_NAME,
    SPOT_DEFAULT_LABELS,
    SPOT_FLAGS,
    SPOT_NAME,
    Flag,
)
from reconciler.model.errors import ConfigError, InputError
from reconciler.records.untrusted_json import mappings

POLICY_FILE: Final = "descheduler-policy.yaml"
_SEPARATOR = re.compile(r"(?m)^---[ \t]*$")
_POLICY_KIND = "DeschedulerPolicy"
_FALSE: Final = frozenset({"0", "f", "false"})
"""What Go reads as false (strconv.ParseBool), in lower case."""
_SHOWN_MAX = 5
"""How many names a message has."""
Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptedPrograms:
    """Holds the parts of a sector config that the files of other programs make."""

    config: bytes
    """Sections for the sector config."""
    policy: bytes
    """The DeschedulerPolicy that `descheduler.policy_file` names; empty without one."""
    found: tuple[str, ...]
    """The programs and policies that were found, and where."""
    notes: tuple[str, ...]
    """Settings without a counterpart here, and what happens to them."""


def adopt_programs(files: Sequence[tuple[str, str]]) -> AdoptedPrograms:
    """Return the sections for the programs that manifests run, and what to check.

    Args:
        files: Names and contents.

    Raises:
        InputError: None of the files runs one of the programs, or two of them differ.
        ConfigError: A value is not one that a sector config may have.
    """
    adoption = _Adoption()
    for name, text in files:
        line = 0
        for part in _SEPARATOR.split(text):
            if _says_something(part):
                adoption.take(name, part, _read(name, line, part))
            line += part.count("\n")
    return adoption.result([name for name, _ in files])


def _says_something(part: str) -> bool:
    """Return whether a document is more than blanks and comments."""
    return any(line.strip() and not line.lstrip().startswith("#") for line in part.splitlines())


def _read(name: str, line: int, part: str) -> Document:
    """Read a document of a file, which begins after this many lines.

    Raises:
        InputError: It is not a mapping in YAML; the sector config's own rules do not apply to it.
    """
    try:
        return read_document(part.encode(), name=name)
    except ConfigError as error:
        first = error.problems[0]
        where = f"{name}:{first.line + line}:{first.column}"
        raise InputError(where, first.message, "name manifests with --programs") from None


class _Adoption:
    """Collects the content of the documents."""

    def __init__(self) -> None:
        self._sections: dict[str, dict[str, Any]] = {}
        self._policy = ""
        self._found: list[str] = []
        self._notes: list[str] = []
        self._others: list[str] = []
        """What else the files contain, to tell a person who gave the wrong ones."""

    def take(self, where: str, text: str, document: Document) -> None:
        """Read one document; lists and ConfigMaps contain further ones."""
        if document.get("kind") == _POLICY_KIND:
            self._take_policy(where, text)
            return
        items = mappings(document.get("items"))
        for item in items:
            self.take(where, write_document(item), item)
        if not items:
            self._others.append(_described(document))
        if document.get("kind") == "ConfigMap":
            data = document.get("data")
            for key, value in (data if isinstance(data, Mapping) else {}).items():
                if _POLICY_KIND in str(value):
                    within = f"{where}: {key}"
                    self.take(within, str(value), _read(within, 0, str(value)))
        for container in _containers(document):
            self._take_container(where, document, container)

    def _take_policy(self, where: str, text: str) -> None:
        if self._policy and self._policy != text:
            raise InputError(where, "a second DeschedulerPolicy", "one config has one descheduler")
        self._policy = text
        self._found.append(f"{_POLICY_KIND} in {where}")
        section = self._sections.setdefault("descheduler", {"enabled": UnquotedText("true")})
        section["policy_file"] = POLICY_FILE
        try:
            with_policy_file(Descheduler(), text.encode())
        except PolicyFileFaults as error:
            self._notes.extend(
                f"{POLICY_FILE}:{fault}: `reconciler validate` refuses the file until this is taken"
                " out of it"
                for fault in error.messages
            )

    def _take_container(self, where: str, document: Document, container: Document) -> None:
        words = [str(word) for key in ("command", "args") for word in _texts(container.get(key))]
        name = " ".join([str(container.get("image", "")), *words[:1]])
        kind = str(document.get("kind", ""))
        if SPOT_NAME in name:
            self._found.append(f"k8s-spot-rescheduler of a {kind} in {where}")
            section = self._section("spot_rescheduler", where)
            section |= self._set(where, words, SPOT_FLAGS)
            for key, label in SPOT_DEFAULT_LABELS.items():
                if section.setdefault(key, label) == label:
                    self._notes.append(
                        f"{where}: {key} is {label}, that program's default; the nodes of the"
                        " eks_fleet module carry lifecycle=OnDemand and lifecycle=Ec2Spot"
                    )
        elif DESCHEDULER_NAME in name:
            self._found.append(f"descheduler of a {kind} in {where}")
            section = self._section("descheduler", where)
            section |= self._set(where, words, DESCHEDULER_FLAGS)
            if "interval" not in section:
                self._notes.append(
                    f"{where}: the {kind} runs the descheduler now and then; here it runs at most"
                    " once per `interval`, which is 5m unless it is set"
                )

    def _section(self, key: str, where: str) -> dict[str, Any]:
        """Return a section for which no other document has flags."""
        section = self._sections.setdefault(key, {"enabled": UnquotedText("true")})
        if section.keys() - {"enabled", "policy_file"}:
            raise InputError(where, f"a second program for {key}", "one config has one of each")
        return section

    def _set(self, where: str, words: Sequence[str], known: Mapping[str, Flag]) -> dict[str, Any]:
        """Return the keys that replace flags; add a note for each of the other flags."""
        keys: dict[str, Any] = {}
        for name, value in _flags(words, known):
            flag = known.get(name)
            shown = f"--{name}={value}"
            if flag is None:
                self._notes.append(f"{where}: {shown} is not known here: nothing was made of it")
            elif flag.holds_back and value.lower() in _FALSE:
                self._notes.append(f"{where}: {shown}: not needed")
            elif not flag.key:
                self._notes.append(f"{where}: {shown}: {flag.note}")
                keys |= {"enabled": UnquotedText("false")} if flag.holds_back else {}
            elif value.startswith("$("):
                self._notes.append(f"{where}: {shown} is set at run time: set {flag.key} yourself")
            else:
                keys[flag.key] = UnquotedText(value)
        return keys

    def result(self, names: Sequence[str]) -> AdoptedPrograms:
        """Return everything together, checked by loading the sections."""
        if not self._sections:
            raise InputError(
                _first_names(names),
                "no container runs k8s-spot-rescheduler or descheduler, and no document is a"
                f" DeschedulerPolicy: {_contents_of(self._others)}",
                "give their Deployment, CronJob or ConfigMap, or the policy file; a program is"
                " known by the name of its image or command",
            )
        config = write_document(self._sections)
        _check(config)
        if "descheduler" in self._sections and not self._policy:
            self._notes.append(
                "the descheduler's policy is in none of the files: without `policies` or"
                " `policy_file` it evicts nothing"
            )
        return AdoptedPrograms(
            config=config.encode(),
            policy=self._policy.lstrip("\n").encode(),
            found=tuple(self._found),
            notes=tuple(self._notes),
        )


def _contents_of(others: Sequence[str]) -> str:
    """Return what files without such a program contain, in one clause."""
    counts = Counter(others)
    named = [each if count == 1 else f"{each} ({count} times)" for each, count in counts.items()]
    return f"found {_first_names(named)}" if named else "there is nothing in it"


def _first_names(names: Sequence[str]) -> str:
    """Return the first of some names, and how many more there are."""
    more = len(names) - _SHOWN_MAX
    return ", ".join(names[:_SHOWN_MAX]) + (f" and {more} more" if more > 0 else "")


def _described(document: Document) -> str:
    """Describe a document without such a program, for a message."""
    kind = str(document.get("kind") or "")
    if document.get("items") == []:
        return "an empty list"
    if not kind:
        return "a document without `kind`"
    metadata = document.get("metadata")
    name = str(metadata.get("name") or "") if isinstance(metadata, Mapping) else ""
    images = sorted({str(container.get("image", "")) for container in _containers(document)} - {""})
    return f"{kind} {name}".rstrip() + (f" with {_first_names(images)}" if images else "")


def _check(config: str) -> None:
    """Refuse a value that no sector config may have, naming the key that replaces the flag."""
    try:
        parse_config(config)
    except ConfigError as error:
        first = error.problems[0]
        raise InputError(first.path, first.message, "fix what the manifest says") from None


def _flags(words: Sequence[str], known: Mapping[str, Flag]) -> Iterator[tuple[str, str]]:
    """Yield flags with their values: `--a=b`, `--a b`, `-a=b`, and switches without a value."""
    at = 0
    while at < len(words):
        word, at = words[at], at + 1
        if not word.startswith("-") or word.strip("-") == "":
            continue
        name, stated, value = word.lstrip("-").partition("=")
        flag = known.get(name)
        if not stated:
            value = "true"
            if (flag is None or not flag.switch) and at < len(words):
                follows = words[at]
                if not follows.startswith("-"):
                    value, at = follows, at + 1
        yield name, value


def _containers(document: Document) -> Iterator[Document]:
    """Yield the containers of anything with a pod template, also of CronJobs; of a Pod its own."""
    spec = document.get("spec")
    while isinstance(spec, Mapping):
        yield from mappings(spec.get("containers"))
        inner = spec.get("template", spec.get("jobTemplate"))
        spec = inner.get("spec") if isinstance(inner, Mapping) else None


def _texts(value: object) -> list[object]:
    return value if isinstance(value, list) else []
