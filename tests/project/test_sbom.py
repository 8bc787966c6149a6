"""The software bill of materials."""

import re
import tomllib

import pytest

from tests.project.sbom import ROOT, components, sbom

TEXT = (ROOT / "requirements/runtime.txt").read_text()


def test_every_package_that_is_installed_is_in_it_with_its_hashes() -> None:
    """Whoever asks which clusters run a bad release reads this file."""
    document = sbom(TEXT)
    names = [component["name"] for component in document["components"]]
    assert len(names) == len(re.findall(r"(?m)^[a-z0-9][^\s=]*==", TEXT))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    direct = {re.split(r"[<>=\[]", dependency)[0] for dependency in project["dependencies"]}
    assert direct <= set(names)
    hashes = [
        entry["hashes"][0]["content"]
        for component in document["components"]
        for entry in component["externalReferences"]
    ]
    assert sorted(hashes) == sorted(re.findall(r"sha256:([0-9a-f]{64})", TEXT))
    assert document == sbom(TEXT)


def test_package_without_a_hash_is_an_error() -> None:
    """A bill that leaves something out is believed all the same."""
    with pytest.raises(ValueError, match=r"boto3 1\.0 has no hash"):
        components("boto3==1.0\n")
