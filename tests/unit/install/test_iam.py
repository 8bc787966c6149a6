"""The IAM policies that `reconciler manifest --iam-policy` prints."""

import json
from pathlib import Path
from typing import Any

import pytest
from botocore.session import Session

from tests.unit.install.command import CONFIG, ROLE, run

BACKEND = "terraform: {backend: {bucket: state, key: a/b.tfstate, region: us-west-2}}\n"


def test_policy_of_the_loop_names_its_cluster_and_partition(tmp_path: Path) -> None:
    """An ARN of another partition matches nothing, and the loop is refused everything."""
    config = CONFIG + "regions: [cn-north-1]\n"
    done = run(tmp_path, "--iam-policy", "capacity-loop", config=config)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert "${" not in done.stdout
    conditions = [each["Condition"] for each in document["Statement"] if "Condition" in each]
    limits = {"aws:ResourceTag/cluster": "analytics", "aws:RequestedRegion": ["cn-north-1"]}
    assert conditions == [{"StringEquals": limits}] * 2
    assert "arn:aws-cn:ec2:*:*:fleet/*" in done.stdout


@pytest.mark.parametrize("partition", Session().get_available_partitions())
def test_policy_of_the_loop_is_of_its_partition(tmp_path: Path, partition: str) -> None:
    """Each partition has ARNs and a domain of its own; the policy named those of another."""
    session = Session()
    region = session.get_available_regions("ec2", partition)[0]
    session.set_credentials("key", "secret")
    sqs = session.create_client("sqs", region_name=region).meta.endpoint_url
    queue = f"interruption: {{queue_url: '{sqs}/123456789012/notices'}}\n"
    config = CONFIG + f"regions: [{region}]\n" + queue
    done = run(tmp_path, "--iam-policy", "capacity-loop", config=config)
    assert done.returncode == 0, done.stderr
    assert f'"arn:{partition}:sqs:{region}:123456789012:notices"' in done.stdout
    assert f"arn:{partition}:ec2:*:*:fleet/*" in done.stdout


def test_policy_of_the_loop_names_every_region_of_its_fleets(tmp_path: Path) -> None:
    """A cluster of the same name in another Region is somebody else's."""
    config = CONFIG.replace("{size: small}", "{size: small, regions: [eu-west-1]}")
    config += "regions: [us-west-2, us-east-1]\n"
    done = run(tmp_path, "--iam-policy", "capacity-loop", config=config)
    assert done.returncode == 0, done.stderr
    limited = [each for each in json.loads(done.stdout)["Statement"] if "Condition" in each]
    assert [each["Condition"]["StringEquals"]["aws:RequestedRegion"] for each in limited] == [
        ["eu-west-1", "us-east-1", "us-west-2"]
    ] * 2


@pytest.mark.parametrize(
    ("path", "objects", "listed"),
    [
        ("s3://records/team", "records/team/demand-*", "team/demand-*"),
        ("s3://records", "records/demand-*", "demand-*"),
        ("/var/demand", "", ""),
    ],
)
def test_policy_of_the_loop_names_the_bucket_that_it_records_in(
    tmp_path: Path, path: str, objects: str, listed: str
) -> None:
    """A right to a whole bucket is a right to everything that others keep there."""
    config = CONFIG + f"regions: [us-west-2]\nrecording: {{path: '{path}'}}\n"
    done = run(tmp_path, "--iam-policy", "capacity-loop", config=config)
    assert done.returncode == 0, done.stderr
    found = [s for s in json.loads(done.stdout)["Statement"] if "s3:" in str(s["Action"])]
    assert [s["Resource"] for s in found] == (
        [f"arn:aws:s3:::{objects}", "arn:aws:s3:::records"] if objects else []
    )
    if objects:
        assert found[1]["Condition"] == {"StringLike": {"s3:prefix": listed}}


def objects_of(policy: str) -> list[Any]:
    """What each statement about S3 is limited to, in the order of the policy."""
    statements = json.loads(policy)["Statement"]
    return [statement["Resource"] for statement in statements if "s3:" in str(statement["Action"])]


@pytest.mark.parametrize("name", ["ci-plan", "ci-apply"])
def test_policies_of_pipelines_are_limited_to_the_state(tmp_path: Path, name: str) -> None:
    """A bucket often holds the state of everything that a company has."""
    arguments = ("--iam-policy", name, "--node-role", ROLE)
    done = run(tmp_path, *arguments, config=CONFIG + BACKEND)
    assert done.returncode == 0, done.stderr
    state = "arn:aws:s3:::state/a/b.tfstate"
    lock = [[f"{state}.tflock"]] if name == "ci-apply" else []
    assert objects_of(done.stdout) == ["arn:aws:s3:::state", [state], *lock]


@pytest.mark.parametrize("name", ["ci-plan", "ci-apply"])
def test_policies_of_pipelines_reach_the_state_of_each_region(tmp_path: Path, name: str) -> None:
    """The first plan of a further region would be refused its state."""
    config = CONFIG.replace("{size: small}", "{size: small, regions: [us-west-2, eu-west-1]}")
    config += BACKEND + "regions: [us-west-2, us-east-1]\n"
    done = run(tmp_path, "--iam-policy", name, "--node-role", ROLE, config=config)
    assert done.returncode == 0, done.stderr
    states = [f"arn:aws:s3:::state/a/b{each}.tfstate" for each in ("", "-eu-west-1", "-us-east-1")]
    locks = [[f"{state}.tflock" for state in states]] if name == "ci-apply" else []
    assert objects_of(done.stdout) == ["arn:aws:s3:::state", states, *locks]


@pytest.mark.parametrize("name", ["ci-plan", "ci-apply"])
def test_policies_of_pipelines_reach_groups_only_where_terraform_makes_some(
    tmp_path: Path, name: str
) -> None:
    """Without them the first apply of a group fails; with them no group of others may change."""
    made = "sectors: {web: {kind: cpu, fleets: [{size: small, provider: asg, auto_scaling_group: g"
    statements = {}
    for end in ("}]}}", ", managed: false}]}}"):
        arguments = ("--iam-policy", name, "--node-role", ROLE)
        done = run(tmp_path, *arguments, config=CONFIG.split("sectors:")[0] + BACKEND + made + end)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)["Statement"]
        statements[end] = [each for each in found if "autoscaling:" in str(each["Action"])]
    own, others = statements.values()
    assert others == []
    changing = [each for each in own if "Describe" not in str(each["Action"])]
    assert bool(changing) is (name == "ci-apply")
    assert all("cluster" in str(each["Condition"]["StringEquals"]) for each in changing)


@pytest.mark.parametrize(
    ("parameter", "resource"),
    [
        ("/aws/service/eks/image_id", "arn:aws:ssm:*:*:parameter/aws/service/eks/image_id"),
        ("golden:3", "arn:aws:ssm:*:*:parameter/golden"),
        (
            "arn:aws:ssm:us-west-2:123456789012:parameter/golden:tested",
            "arn:aws:ssm:us-west-2:123456789012:parameter/golden",
        ),
    ],
)
def test_policy_of_the_apply_reads_the_parameters_that_name_images(
    tmp_path: Path, parameter: str, resource: str
) -> None:
    """Auto Scaling looks the image up with the rights of whoever makes or changes the group."""
    group = (
        "sectors: {web: {kind: cpu, fleets: [{size: small, provider: asg, auto_scaling_group: g}]}}"
    )
    image = BACKEND.replace("{backend", f"{{ami: 'resolve:ssm:{parameter}', backend")
    config = CONFIG.split("sectors:")[0] + image + group
    rights = {}
    for name in ("ci-plan", "ci-apply"):
        done = run(tmp_path, "--iam-policy", name, "--node-role", ROLE, config=config)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)["Statement"]
        rights[name] = [s["Resource"] for s in found if "ssm:GetParameters" in s["Action"]]
    assert rights == {"ci-plan": [], "ci-apply": [[resource]]}


def test_policy_of_the_apply_reaches_all_that_a_fleet_is_launched_with(tmp_path: Path) -> None:
    """A fleet in a placement group was refused: EC2 checks each resource by itself."""
    done = run(tmp_path, "--iam-policy", "ci-apply", "--node-role", ROLE, config=CONFIG + BACKEND)
    assert done.returncode == 0, done.stderr
    kinds = {"image", "instance", "key-pair", "network-interface", "placement-group",
             "security-group", "snapshot", "subnet", "volume"}  # fmt: skip
    for sid in ("UseWhatFleetsAreMadeFrom", "LaunchFromTemplatesOnly"):
        (found,) = (s for s in json.loads(done.stdout)["Statement"] if s["Sid"] == sid)
        assert {each.split(":")[-1] for each in found["Resource"]} == {f"{k}/*" for k in kinds}


@pytest.mark.parametrize("name", ["capacity-loop", "ci-plan", "ci-apply"])
def test_policies_keep_groups_while_one_that_the_config_lost_may_be_removed(
    tmp_path: Path, name: str
) -> None:
    """A group's last nodes could not be drained, nor the group be deleted."""
    found = {}
    for approved in ("[]", "[coordinate-old]", "[primary-small]"):
        config = CONFIG + BACKEND + f"regions: [us-west-2]\nallow_destroy: {approved}\n"
        done = run(tmp_path, "--iam-policy", name, "--node-role", ROLE, config=config)
        assert done.returncode == 0, done.stderr
        found[approved] = "autoscaling:" in done.stdout
    assert found == {"[]": False, "[coordinate-old]": True, "[primary-small]": False}


@pytest.mark.parametrize(
    ("name", "config", "why"),
    [
        ("ci-plan", CONFIG, "terraform.backend"),
        ("ci-apply", CONFIG + BACKEND, "--node-role"),
        ("capacity-loop", CONFIG, "regions"),
    ],
)
def test_policy_that_cannot_be_limited_is_refused(
    tmp_path: Path, name: str, config: str, why: str
) -> None:
    """A policy with a hole in it is worse than none."""
    done = run(tmp_path, "--iam-policy", name, config=config)
    assert (done.returncode, done.stdout) == (2, "")
    assert why in done.stderr


def test_policy_of_the_loop_names_the_queue_of_the_config(tmp_path: Path) -> None:
    """Without these rights every notice stays in the queue; with more, so does somebody else's."""
    url = "https://sqs.cn-north-1.amazonaws.com.cn/123456789012/analytics-fleet-reconciler"
    config = CONFIG + f"regions: [cn-north-1]\ninterruption: {{queue_url: '{url}'}}\n"
    done = run(tmp_path, "--iam-policy", "capacity-loop", config=config)
    assert done.returncode == 0, done.stderr
    (queue,) = [each for each in json.loads(done.stdout)["Statement"] if "sqs:" in str(each)]
    assert queue["Resource"] == (
        "arn:aws-cn:sqs:cn-north-1:123456789012:analytics-fleet-reconciler"
    )
    assert sorted(queue["Action"]) == [
        "sqs:ChangeMessageVisibility",
        "sqs:DeleteMessage",
        "sqs:ReceiveMessage",
    ]


def test_queue_that_no_policy_can_name_is_refused(tmp_path: Path) -> None:
    """A policy for every queue would let the loop read those of others."""
    queue = "interruption: {queue_url: 'https://example.com/123456789012/queue'}\n"
    config = CONFIG + "regions: [us-west-2]\n" + queue
    done = run(tmp_path, "--iam-policy", "capacity-loop", config=config)
    assert done.returncode == 2
    assert "interruption.queue_url" in done.stderr


KEY_ID = "1234abcd-12ab-44cd-86ef-1234567890ab"
KEY_ARN = f"arn:aws:kms:us-west-2:123456789012:key/{KEY_ID}"
ALIAS_ARN = "arn:aws:kms:us-west-2:123456789012:alias/terraform"


@pytest.mark.parametrize(
    ("key", "resource", "alias"),
    [
        (KEY_ARN, KEY_ARN, ""),
        (KEY_ID, f"arn:aws:kms:us-west-2:*:key/{KEY_ID}", ""),
        ("alias/terraform", "arn:aws:kms:us-west-2:*:key/*", "alias/terraform"),
        (ALIAS_ARN, "arn:aws:kms:us-west-2:123456789012:key/*", "alias/terraform"),
    ],
)
@pytest.mark.parametrize("name", ["ci-plan", "ci-apply"])
def test_policies_of_pipelines_may_use_the_key_of_the_state(
    tmp_path: Path, name: str, key: str, resource: str, alias: str
) -> None:
    """The first plan would end with AccessDenied of KMS."""
    config = CONFIG + BACKEND.replace("{bucket", f"{{kms_key_id: '{key}', bucket")
    done = run(tmp_path, "--iam-policy", name, "--node-role", ROLE, config=config)
    assert done.returncode == 0, done.stderr
    (statement,) = (s for s in json.loads(done.stdout)["Statement"] if "kms:" in str(s["Action"]))
    writes = ["kms:GenerateDataKey"] if name == "ci-apply" else []
    assert statement["Action"] == ["kms:Decrypt", *writes]
    assert statement["Resource"] == resource
    condition = {"ForAnyValue:StringEquals": {"kms:ResourceAliases": alias}}
    assert statement.get("Condition") == (condition if alias else None)
