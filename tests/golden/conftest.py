"""`--update-golden` rewrites the expected files from what is rendered now."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option; it does nothing but to the tests of this folder."""
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite tests/golden/rendered, then review it"
    )


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether expected files are to be rewritten."""
    return bool(request.config.getoption("--update-golden", default=False))
