"""`reconciler import` of Auto Scaling groups: what their nodes will be, and settings in tags."""

import pytest

from reconciler.config.loader import load_config
from reconciler.config.resolve import ResolvedFleet, resolve_fleets
from tests.cli.importing.desk import Desk, Json, adopted, group, templated

TEMPLATE = "k8s.io/cluster-autoscaler/node-template"
ML: Json = {f"{TEMPLATE}/label/team": "ml", f"{TEMPLATE}/taint/dedicated": "ml:NoSchedule"}
AL2 = "/etc/eks/bootstrap.sh analytics --kubelet-extra-args '{}'\n"


def workers(tags: Json) -> Json:
    """A group that Terraform can have, with these tags and the usual ones."""
    return templated("workers", tags=tags)


def only_fleet(desk: Desk) -> ResolvedFleet:
    """The one fleet of the config that was written."""
    (fleet,) = resolve_fleets(load_config(desk.folder / "out/sectors.yaml"))
    assert fleet.is_rendered
    return fleet


@pytest.mark.parametrize(
    "user_data",
    ["", AL2.format("--node-labels=team=ml --register-with-taints=dedicated=ml:NoSchedule")],
)
def test_labels_and_taints_of_a_groups_tags_are_in_the_config(desk: Desk, user_data: str) -> None:
    """Plans read the config alone: the pods with the selector would wait, others have nodes."""
    answer, imports = adopted(desk, workers(ML), user_data=user_data)
    assert imports
    fleet = only_fleet(desk)
    assert fleet.labels["team"] == "ml"
    assert [(taint.key, taint.value, taint.effect) for taint in fleet.taints] == [
        ("dedicated", "ml", "NoSchedule")
    ]
    assert not any("its tags state" in note for note in answer["notes"])


def test_what_tags_state_and_user_data_does_not_give_is_said(desk: Desk) -> None:
    """Cluster Autoscaler believed these tags; whether nodes are as they say is to be checked."""
    tags = {**ML, f"{TEMPLATE}/label/disk": "fast"}
    user_data = AL2.format("--node-labels=team=data")
    answer, _ = adopted(desk, workers(tags), user_data=user_data)
    fleet = only_fleet(desk)
    assert (fleet.labels["team"], fleet.labels["disk"]) == ("data", "fast")
    (other,) = [note for note in answer["notes"] if "say team=ml" in note]
    assert "its user data gives nodes the label team=data" in other
    (missing,) = [note for note in answer["notes"] if "disk=fast" in note]
    assert "dedicated=ml:NoSchedule, which its user data does not give" in missing


def test_tags_that_the_config_cannot_have_are_said_with_what_follows(desk: Desk) -> None:
    """A pod that needs a label or a resource which is dropped silently never gets a node."""
    tags = {
        f"{TEMPLATE}/label/node-role.kubernetes.io/ml": "true",
        f"{TEMPLATE}/label/kubernetes.io/arch": "amd64",
        f"{TEMPLATE}/resources/smarter-devices/fuse": "20",
        f"{TEMPLATE}/resources/cpu": "1930m",
    }
    answer, _ = adopted(desk, workers(tags))
    fleet = only_fleet(desk)
    assert not {"node-role.kubernetes.io/ml", "kubernetes.io/arch"} & set(fleet.labels)
    (label,) = [note for note in answer["notes"] if "node-role.kubernetes.io/ml=true" in note]
    assert "a pod that selects it gets no node here" in label
    assert "arch" not in label
    (resource,) = [note for note in answer["notes"] if "smarter-devices/fuse 20" in note]
    assert "plans count what its size states" in resource
    assert "(cpu 1930m, smarter-devices/fuse 20)" in resource
    # As the `cpu` of the size it would be reduced by the reserve once more.
    assert "under `allocatable`" in resource


def test_odd_tags_are_named_and_keep_no_group_out_of_terraform(desk: Desk) -> None:
    """The reason named `node_labels` of a config that nobody had written, and not the tag."""
    tags = {
        **ML,
        f"{TEMPLATE}/label/owner": "data science",
        f"{TEMPLATE}/label/a/b/c": "d",
        f"{TEMPLATE}/taint/reserved": "for us:NoSchedule",
        f"{TEMPLATE}/taint/plain": "yes",
        f"{TEMPLATE}/resources/vendor.com/card": "some",
    }
    answer, imports = adopted(desk, workers(tags))
    assert imports
    fleet = only_fleet(desk)
    assert not {"owner", "a/b/c"} & set(fleet.labels)
    assert [taint.key for taint in fleet.taints] == ["dedicated"]
    notes = [note for note in answer["notes"] if "no node can have" in note]
    named = [
        "label/a/b/c=d",
        "label/owner=data science",
        "resources/vendor.com/card=some",
        "taint/plain=yes",
        "taint/reserved=for us:NoSchedule",
    ]
    assert len(notes) == len(named)
    for note, tag in zip(sorted(notes), named, strict=True):
        assert f"its tag k8s.io/cluster-autoscaler/node-template/{tag} states" in note
    assert "node_labels" not in "\n".join(notes)


@pytest.mark.parametrize("made", [workers, lambda tags: group("workers", tags=tags)])
def test_options_in_a_groups_tags_are_said_with_their_key(desk: Desk, made: object) -> None:
    """A group of GPU nodes that kept them for a day loses them after ten minutes."""
    assert callable(made)
    options = f"{TEMPLATE}/autoscaling-options"
    tags = {f"{options}/scaledownunneededtime": "24h", f"{options}/zeroormaxnodescaling": "true"}
    answer, _ = adopted(desk, made(tags))
    notes = "\n".join(answer["notes"])
    assert "scaledownunneededtime=24h is not read: state unneeded_time and idle_threshold" in notes
    assert "zeroormaxnodescaling=true is not read, and nothing here replaces it" in notes


@pytest.mark.parametrize(
    ("user_data", "said"),
    [("#!/bin/sh\n/opt/join\n", True), ("#!/bin/sh\njoin --node-labels=a=b\n", False)],
)
def test_user_data_that_is_not_understood_is_said(
    desk: Desk, user_data: str, *, said: bool
) -> None:
    """Labels and taints that only such a program knows are not in the config."""
    answer, _ = adopted(desk, workers({}), user_data=user_data)
    assert said == any("which labels and taints its nodes have" in n for n in answer["notes"])


def test_group_with_weights_is_not_said_to_be_sized(desk: Desk) -> None:
    """Its capacity counts units, which no plan changes: its pods wait."""
    overrides = [{"InstanceType": "m5.large", "WeightedCapacity": "2"}]
    answer, _ = adopted(desk, templated("workers", overrides=overrides))
    (left,) = [note for note in answer["notes"] if "stays out of Terraform" in note]
    assert "the capacity loop does not size it until its target counts nodes" in left
