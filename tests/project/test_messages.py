"""docs/messages.md has every error message of the program, and no other."""

import re

from tests.project.messages import DOCS, is_own, plain, raised, written

PAGE = DOCS / "messages.md"
QUOTED = re.compile(r"(?<!`)(?:``(?P<with_ticks>.+?)``|`(?P<plain>[^`]+)`)(?!`)")
OF_OTHERS = "In the words of others"
CODES = "What the guard says"
CODE = re.compile(r"[a-z]+/[a-z-]+")


def _rows(section: str) -> list[str]:
    return [line for line in section.splitlines() if line.startswith("| ")][1:]


def listed() -> list[str]:
    """The messages in the first column of the page's tables."""
    found = []
    for section in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        if section.startswith(OF_OTHERS):
            continue
        rows = _rows(section.partition(f"\n### {CODES}")[0])
        cells = (row.split(" | ")[0] for row in rows)
        quoted = (each for cell in cells for each in QUOTED.finditer(cell))
        found += [plain(each["with_ticks"] or each["plain"]) for each in quoted]
    return found


def test_every_error_message_is_listed() -> None:
    """Whoever meets one at night searches the documentation for its words."""
    known = set(listed())
    missing = {
        message: error.place
        for error in raised()
        for message in error.messages
        if is_own(message) and message not in known
    }
    assert not missing, f"give them cause and remedy in docs/messages.md: {missing}"


def test_every_listed_message_is_one_of_the_program() -> None:
    """A message that was reworded is searched for by its new words."""
    said = written() | {message for error in raised() for message in error.messages}
    assert [message for message in listed() if message not in said] == []


def test_message_is_listed_once() -> None:
    """Of two remedies the second is never found."""
    assert sorted(listed()) == sorted(set(listed()))


def test_every_row_says_cause_and_remedy() -> None:
    """A message alone is known already."""
    rows = [
        line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")
    ]
    assert [row for row in rows if len([c for c in row.split(" | ") if c.strip(" |")]) < 2] == []


def test_messages_are_read_from_the_source() -> None:
    """A reading that finds nothing lets every message pass."""
    found = [message for error in raised() for message in error.messages]
    assert len(set(filter(is_own, found))) > 250
    assert "no such file" in found  # from a function of another module
    assert "the branch … moved on" in found  # with a hole
    assert {"cannot be combined with --once", "needs --repository"} <= set(found)  # one of two


def test_every_code_of_the_guard_is_listed_and_no_other() -> None:
    """A refused plan is fixed by whoever knows what its code means."""
    section = PAGE.read_text(encoding="utf-8").partition(f"### {CODES}")[2].partition("\n## ")[0]
    found = [code for row in _rows(section) for code in CODE.findall(row.split(" | ")[0])]
    assert sorted(found) == sorted(filter(CODE.fullmatch, written("gitops")))
