"""Where Terraform keeps the state: names that S3 and Terraform take, in every region."""

import json

import pytest

from reconciler.config.loader import parse_config
from reconciler.gitops.rendering.root_module import root_modules_of
from tests.unit.config.documents import found

_REGIONS = (
    "cluster: a\nregions: [us-west-2, us-east-1]\n"
    "sectors: {s: {kind: memory, fleets: [{size: small, regions: [us-west-2, us-east-1]}]}}\n"
)


def with_backend(*, bucket: str = "states", key: str = "fleets.tfstate") -> str:
    """A config of two regions with such a backend."""
    backend = json.dumps({"bucket": bucket, "key": key, "region": "us-west-2"})
    return f"{_REGIONS}terraform: {{backend: {backend}}}\n"


@pytest.mark.parametrize(
    "key", ["", "/", ".", "..", "/a", "a/", "a//b", "./a", "a/../b", " ", "a\nb", "ä" * 501]
)
def test_key_that_is_no_objects_name_is_a_fault(key: str) -> None:
    """`terraform init` refuses it, and a further region's key cannot be made of it."""
    at = "terraform.backend.key"
    assert ("config/type", at) in [fault[:2] for fault in found(with_backend(key=key))]


@pytest.mark.parametrize("bucket", ["", "ab", "a/b", "My_Bucket!", "s3://states", "a" * 256])
def test_bucket_that_no_bucket_can_be_called_is_a_fault(bucket: str) -> None:
    """The pipeline would stop at a commit that validated."""
    at = "terraform.backend.bucket"
    assert ("config/type", at) in [fault[:2] for fault in found(with_backend(bucket=bucket))]


@pytest.mark.parametrize("bucket", ["states", "team.states-1", "Old_States"])
@pytest.mark.parametrize("key", ["k", "a/b.tfstate", "a b/.state", "team=x/fleets"])
def test_each_region_has_a_state_of_its_own(bucket: str, key: str) -> None:
    """Two roots over one state would take each other's fleets down."""
    config = parse_config(with_backend(bucket=bucket, key=key))
    backends = [root.backend for root in root_modules_of(config).values()]
    assert len({backend.key for backend in backends if backend}) == 2
