"""From a config to the files of its directory."""

import orjson
import pytest

from reconciler.gitops.rendering.targets import RenderTarget
from reconciler.gitops.repository.proposal import claims_of_render, propose
from reconciler.model.errors import ConfigError, UsageError

TARGET = RenderTarget(config_path="sectors.yaml", output_dir="terraform")
SMALL = b"cluster: one\nsectors: {primary: {kind: memory, fleets: [{size: small}]}}\n"


def test_valid_config_proposes_the_rendered_files_below_the_output() -> None:
    """Files elsewhere would be somebody else's."""
    proposal = propose(TARGET, SMALL, old_manifests={})
    paths = [change.path for change in proposal.changes]
    assert proposal.cluster == "one"
    assert "terraform/fleets.auto.tfvars.json" in paths
    assert all(path.startswith("terraform/") for path in paths)
    assert all(change.content is not None for change in proposal.changes)


def test_files_of_an_older_render_are_removed() -> None:
    """A module that is no longer rendered would stay in force otherwise."""
    old = orjson.dumps({"files": ["main.tf", "modules/gone/main.tf"]})
    changes = propose(TARGET, SMALL, old_manifests={None: old}).changes
    assert [c.path for c in changes if c.content is None] == ["terraform/modules/gone/main.tf"]


@pytest.mark.parametrize(
    "manifest",
    [b"", b"nonsense", b"[]", b'{"files": 3}', b'{"files": ["../sectors.yaml", "/x", 7, "."]}'],
)
def test_odd_manifest_removes_nothing(manifest: bytes) -> None:
    """A crafted manifest must not make the loop delete the config or other files."""
    changes = propose(TARGET, SMALL, old_manifests={None: manifest}).changes
    assert not [change for change in changes if change.content is None]


def test_invalid_config_proposes_nothing() -> None:
    """A config with faults must never reach Terraform."""
    with pytest.raises(ConfigError) as caught:
        propose(TARGET, b"cluster: one\nsectors: {a: {kind: nosuch}}\n", old_manifests={})
    assert caught.value.problems


def test_nameless_cluster_takes_the_given_name_or_is_refused() -> None:
    """Fleets tagged with no cluster would never be found again."""
    nameless = SMALL.split(b"\n", 1)[1]
    assert propose(TARGET, nameless, old_manifests={}, cluster_name="two").cluster == "two"
    with pytest.raises(UsageError):
        propose(TARGET, nameless, old_manifests={})


def of_place(place: str, *, cluster: str = "one", bucket: str = "states", queue: str = "") -> bytes:
    """A config whose fleets are placed like that, with a state key of its own for each call."""
    key = f"{cluster}-{bucket}-{queue[-1:]}"
    return (
        f"cluster: {cluster}\nregions: [us-west-2]\ninterruption: {{queue_url: '{queue}'}}\n"
        "sectors: {primary: {kind: memory, fleets: [{size: small, instance_types: [r5.xlarge]}]}}\n"
        f"terraform: {{ami: al2023@latest, security_group_id: sg-1, {place}, "
        f"backend: {{bucket: {bucket}, key: {key}.tfstate, region: us-west-2}}}}\n"
    ).encode()


def shared(one: bytes, other: bytes) -> list[str]:
    """What two configs in folders of their own both describe."""
    targets = [RenderTarget(config_path=f"{n}/s.yaml", output_dir=f"{n}/tf") for n in "ab"]
    found = [
        propose(target, config.replace(b".tfstate", f"{n}.tfstate".encode()), old_manifests={})
        for n, (target, config) in enumerate(zip(targets, (one, other), strict=True))
    ]
    return sorted(found[0].claims & found[1].claims)


QUEUE = "https://sqs.us-west-2.amazonaws.com/123456789012/q1"


@pytest.mark.parametrize(
    "place",
    [
        "private_subnet_ids: {us-west-2a: subnet-1}",
        "subnet_tags: {tier: private}",
        "overrides: [{instance_type: r5.xlarge, subnet_id: subnet-1}]",
        "overrides: [{instance_type: r5.xlarge, availability_zone: us-west-2a}]",
    ],
)
def test_copy_with_another_state_describes_the_same_fleets(place: str) -> None:
    """Two root modules over the same fleets would undo each other."""
    config = of_place(place, queue=QUEUE)
    (claim,) = shared(config, config)
    assert claim.startswith("fleet primary-small of cluster one in ")


@pytest.mark.parametrize(
    "changes",
    [
        {"cluster": "two"},
        {"bucket": "other"},
        {"queue": QUEUE.replace("123456789012", "210987654321")},
    ],
)
def test_clusters_of_one_name_are_two_where_their_accounts_differ(changes: dict[str, str]) -> None:
    """Subnets of every account may have the same tags; the queue and the bucket are of one."""
    place = "subnet_tags: {tier: private}"
    other = of_place(place, **{"queue": QUEUE, **changes})
    assert shared(of_place(place, queue=QUEUE), other) == []


def test_security_groups_of_other_accounts_tell_clusters_of_one_name_apart() -> None:
    """Neither has a queue, and one bucket has the states of all accounts: both would be invalid."""
    one = of_place("subnet_tags: {tier: private}")
    assert shared(one, one.replace(b"sg-1", b"sg-2")) == []
    assert shared(one, one.replace(b"r5.xlarge", b"r5.2xlarge")) != []


def test_clusters_with_other_tags_are_two() -> None:
    """Tags say which subnets are meant."""
    one, other = (of_place(f"subnet_tags: {{account: {each}}}") for each in ("a", "b"))
    assert shared(one, other) == []


@pytest.mark.parametrize(
    "place",
    [
        "private_subnet_ids: {us-west-2a: subnet-1}",
        "subnet_tags: {tier: private}",
        "overrides: [{instance_type: r5.xlarge, availability_zone: us-west-2a}]",
    ],
)
def test_render_describes_the_same_as_the_config_that_it_was_made_of(place: str) -> None:
    """A copied folder would take over while the original has a fault."""
    config = of_place(place, queue=QUEUE)
    made = propose(TARGET, config, old_manifests={})
    inside = {path.removeprefix("terraform/"): content for path, content in made.files.items()}
    assert claims_of_render("terraform", inside, config) == made.claims
    assert claims_of_render("terraform", inside, b"[") or place.startswith("private")


@pytest.mark.parametrize(
    "values", [b"[1]", b"{", b'{"cluster_name": "one", "fleets": {"a": {"private_subnet_ids": 1}}}']
)
def test_values_that_people_broke_describe_nothing_and_stop_no_turn(values: bytes) -> None:
    """One folder with an edited file must not hold up the other clusters."""
    claims = claims_of_render("terraform", {"fleets.auto.tfvars.json": values}, b"")
    assert claims <= {"the directory terraform"}
