"""The provider that tests attach to: the real one, with fewer schemas."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.terraform import kept_provider
from tests.terraform.named_schemas import with_types
from tests.terraform.needs import needs_provider
from tests.terraform.program import TerraformProgram, find_terraform

LONG = "aws_of_a_name_that_is_longer_than_a_length_of_seven_bits_" + "x" * 100
ROOT = """
terraform {
  required_providers {
    aws = { source = "hashicorp/aws" }
  }
}
data "%s" "any" {}
"""


def field(number: int, content: bytes) -> bytes:
    """A field that is a message or a text; its length takes two bytes from 128 on."""
    length = len(content)
    lengths = bytes([length]) if length < 128 else bytes([length & 0x7F | 0x80, length >> 7])
    return bytes([number << 3 | 2]) + lengths + content


def entry(name: str) -> bytes:
    """An entry of a map from a type to its schema."""
    return field(1, name.encode()) + field(2, f"schema of {name}".encode())


def test_only_named_types_are_left_and_the_rest_is_as_it_was() -> None:
    """What is no map of types has keys of its own: functions have names of another kind."""
    whole = [
        field(1, b"the provider"),
        *(field(number, entry(name)) for number in (2, 3, 8) for name in ("aws_a", "aws_b", LONG)),
        field(7, entry("arn_parse")),
        field(6, b""),
    ]
    left = [each for each in whole if b"aws_b" not in each]
    assert with_types(b"".join(whole), frozenset({"aws_a", LONG})) == b"".join(left)


def test_answer_of_an_unknown_form_is_no_answer() -> None:
    """Half an answer would be a provider without some of its types."""
    with pytest.raises(ValueError, match="field 4 is of wire type 0"):
        with_types(bytes([4 << 3, 1]), frozenset())


@pytest.fixture(scope="module")
def terraform() -> Iterator[TerraformProgram]:
    """The program, or a skipped test."""
    yield find_terraform()
    kept_provider.stop()


@pytest.mark.terraform
@needs_provider
def test_terraform_sees_named_types_and_says_which_others_it_lacks(
    terraform: TerraformProgram, tmp_path: Path
) -> None:
    """A test that uses a type for the first time needs no list to be edited: its text names it."""
    (tmp_path / "main.tf").write_text(ROOT % "aws_partition", encoding="utf-8")
    terraform.init(tmp_path)
    shown = json.loads(terraform.run(tmp_path, "providers", "schema", "-json").stdout)
    (seen,) = shown["provider_schemas"].values()
    assert "aws_ec2_fleet" in seen["resource_schemas"]
    assert 20 < len(seen["resource_schemas"]) < 60
    assert terraform.run(tmp_path, "validate").returncode == 0
    other = "aws_" + "arn"  # in one piece it would be named here
    (tmp_path / "main.tf").write_text(ROOT % other, encoding="utf-8")
    refused = terraform.run(tmp_path, "validate")
    assert f'does not support data source "{other}"' in " ".join(refused.stderr.split())
