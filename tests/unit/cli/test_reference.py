"""The page of commands has every command and option, and nothing else."""

from tests.unit.cli.reference import PAGE, reference


def test_the_page_is_what_the_commands_say() -> None:
    """An option that was added or taken away shows in the page."""
    assert PAGE.read_text(encoding="utf-8") == reference(), "run python -m tests.unit.cli.reference"
