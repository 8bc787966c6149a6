"""A config of two Regions on its way through the pipeline: a root, a state and a job for each."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import boto3
import pytest

from reconciler.sandbox.aws.bootstrap import AccountIds, bootstrap_account
from reconciler.sandbox.aws.server import AwsServer
from tests.git_remote import git
from tests.sandbox.gitops.pipeline_on_aws import (
    REGION,
    Account,
    Pipeline,
    config,
    make_bucket,
    new_pipeline,
)
from tests.terraform.needs import needs_provider, real_terraform

pytestmark = real_terraform

EAST = "us-east-1"


@pytest.fixture
def east() -> Iterator[tuple[Account, AccountIds]]:
    """An emulated account with a network in two Regions; the ids are those of the second."""
    with AwsServer() as server:
        account = Account(url=server.url, ids=bootstrap_account(server.url, REGION))
        make_bucket(account)
        yield account, bootstrap_account(server.url, EAST)


def of_two_regions(account: Account, there: AccountIds, *, removed: bool = False) -> str:
    """The config; `removed` leaves the second Region and approves what goes with it."""
    subnets = ", ".join(f"{zone}: {subnet}" for zone, subnet in there.subnet_ids.items())
    by_region = (
        f"  by_region:\n    {EAST}:\n      ami: {there.ami}\n"
        f"      security_group_id: {there.security_group_id}\n"
        f"      private_subnet_ids: {{{subnets}}}\n"
    )
    text = config(account, team="wide").replace("sectors:\n", f"{by_region}sectors:\n")
    if removed:
        return text
    return text.replace(f"regions: [{REGION}]", f"regions: [{REGION}, {EAST}]")


def fleets_in(account: Account, region: str) -> list[tuple[str, int]]:
    """Names and targets of the living fleets of a Region."""
    session = boto3.Session("sandbox", "sandbox", region_name=region)
    with closing(session.client("ec2", endpoint_url=account.url)) as ec2:
        found = ec2.describe_fleets()["Fleets"]
    return [
        (tag["Value"], fleet["TargetCapacitySpecification"]["TotalTargetCapacity"])
        for fleet in found
        if fleet["FleetState"] == "active"
        for tag in fleet["Tags"]
        if tag["Key"] == "fleet"
    ]


def deploy(pipeline: Pipeline) -> None:
    """Plan and apply every root module that the checkout has, as the pipelines of ci/ do."""
    listed = pipeline.reconciler("ci", "roots", "--rendered", "--output", "json")
    for root in json.loads(listed.stdout)["roots"]:
        kept = f"../{root['name']}.plan"
        for stage in (["plan", "--out"], ["apply", "--plan"]):
            done = pipeline.reconciler("ci", stage[0], "--dir", root["dir"], stage[1], kept)
            assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.nightly
@needs_provider
def test_fleet_of_two_regions_is_made_in_both_and_removed_from_one(
    tmp_path: Path, east: tuple[Account, AccountIds]
) -> None:
    """The other half would be a config of its own, with a cluster that two loops plan."""
    account, there = east
    pipeline = new_pipeline(tmp_path, account)
    pipeline.push(of_two_regions(account, there))
    deploy(pipeline)
    assert fleets_in(account, REGION) == [("primary-small", 2)]
    assert fleets_in(account, EAST) == [("primary-small", 2)]
    assert len(account.objects()) == 2
    for directory in ("terraform", f"terraform-{EAST}"):
        drift = pipeline.reconciler("ci", "drift", "--dir", directory, "--detailed-exitcode")
        assert drift.returncode == 0, drift.stdout + drift.stderr
    pipeline.push(of_two_regions(account, there, removed=True))
    assert "fleets" in git(pipeline.work, "ls-files", f"terraform-{EAST}")
    planned = pipeline.reconciler(
        "ci", "plan", "--dir", f"terraform-{EAST}", "--out", "../gone.plan"
    )
    assert planned.returncode == 1, planned.stdout
    assert "primary-small" in planned.stderr
    assert fleets_in(account, EAST) == [("primary-small", 2)]
