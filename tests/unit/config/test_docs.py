"""The configuration pages say what the program does."""

import re

import pytest

from reconciler.config.faults import ALL_CODES, PURPOSE_CODES, WARNING_CODES
from tests.unit.config.documents import found
from tests.unit.config.reference import PAGE, page_with_reference

PAGES = [PAGE, PAGE.with_name("migrating-from-kluster-fleet-manager.md")]


def test_reference_is_what_the_models_say() -> None:
    """A key that the page does not have is a key that nobody finds.

    Mend it with `python -m tests.unit.config.reference`.
    """
    page = PAGE.read_text(encoding="utf-8")
    assert page == page_with_reference(page)


def test_every_fault_code_is_explained() -> None:
    """The code is what people search for."""
    page = PAGE.read_text(encoding="utf-8")
    codes = (*ALL_CODES, *PURPOSE_CODES, *WARNING_CODES)
    assert [code for code in codes if f"`{code}`" not in page] == []


EXAMPLES = [
    (page.name, text)
    for page in PAGES
    for text in re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    if not text.startswith("repos:")  # the one for pre-commit
]


@pytest.mark.parametrize(("page", "text"), EXAMPLES)
def test_example_in_the_pages_is_valid(page: str, text: str) -> None:
    """The first thing people do is to copy an example."""
    assert found(text) == [], page
