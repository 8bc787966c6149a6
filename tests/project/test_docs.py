"""The documentation's navigation and links, without the generator that `make docs` installs."""

import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from reconciler.cli.plan import EXAMPLE
from reconciler.records.kubernetes.documents import HINT
from reconciler.records.kubernetes.fields import API_GROUPS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))


def _pages(entry: object) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    elif isinstance(entry, list):
        for one in entry:
            yield from _pages(one)
    elif isinstance(entry, dict):
        yield from _pages(list(entry.values()))


def test_every_page_is_in_the_navigation_once() -> None:
    """A page that the menu does not have is found by search engines only."""
    listed = list(_pages(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]))
    assert sorted(listed) == PAGES, "add the page to nav in mkdocs.yml"


def test_links_between_pages_lead_somewhere() -> None:
    """A link out of docs/ would be dead on the site: such a file is named as code."""
    dead = []
    for page in PAGES:
        text = re.sub(r"^```.*?^```", "", (DOCS / page).read_text(), flags=re.MULTILINE | re.DOTALL)
        for link in re.findall(r"\]\((?!https?://|#)([^)#\s]+)", text):
            target = ((DOCS / page).parent / link).resolve()
            if not target.is_file() or not target.is_relative_to(DOCS):
                dead.append(f"{page}: {link}")
    assert not dead


def test_every_printed_kubectl_command_saves_each_kind_that_planning_uses() -> None:
    """Without the storage classes every pod with an unbound claim was called unplaceable."""
    names = {"nodes", "pods", "pvc", "pv", "pdb", "sc", "csinodes", "ns", "ds", "leases"}
    assert len(names) == len(API_GROUPS)
    texts = [HINT, EXAMPLE, (ROOT / "README.md").read_text()]
    texts += [(DOCS / page).read_text() for page in PAGES]
    found = [kinds for text in texts for kinds in re.findall(r"kubectl get (\S+,\S+) -A", text)]
    assert len(found) >= 5
    assert {frozenset(kinds.split(",")) for kinds in found} == {frozenset(names)}


def test_every_printed_command_takes_one_taint_off() -> None:
    """A node that lacks one of the keys of a command is not changed by it at all."""
    texts = [path.read_text() for path in ROOT.glob("*.md")]
    texts += [path.read_text() for path in DOCS.rglob("*.md")]
    for folder, kind in (("reconciler", "*.py"), ("charts", "*.*"), ("templates", "*.*")):
        texts += [path.read_text() for path in (ROOT / folder).rglob(kind) if path.is_file()]
    found = [
        keys
        for text in texts
        for arguments in re.findall(r"kubectl taint nodes?\s([^`]*)`", text)
        if (keys := re.findall(r"\S+-(?=\s|$)", arguments))
    ]
    assert [keys for keys in found if len(keys) > 1] == []
    assert len(found) >= 6
