"""The IAM policies: one text each, wherever a copy of it must lie."""

from tests.project.dockerfile import ROOT


def test_copies_in_terraform_modules_are_the_shipped_policies() -> None:
    """What the tests prove is the template; a module that is used alone brings its own copy."""
    for copy in (ROOT / "terraform").rglob("policies/*.json"):
        assert copy.read_text() == (ROOT / "templates" / "iam" / copy.name).read_text(), copy
