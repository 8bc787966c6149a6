"""Labels and taints that no node could have, and names that two fleets would share."""

import pytest

from tests.unit.config.documents import found, with_fleets


def test_label_that_the_kubelet_refuses_is_reserved() -> None:
    """Nodes with it never join: the kubelet ends at once."""
    refused = "{size: small, labels: {node-role.kubernetes.io/batch: x}}"
    assert [code for code, *_ in found(with_fleets(refused))] == ["labels/reserved"]
    allowed = "{size: small, labels: {node.kubernetes.io/pool: x, team.io/a: ''}}"
    assert found(with_fleets(allowed)) == []


@pytest.mark.parametrize(
    "part",
    [
        "labels: {-bad: x}",
        "labels: {good: bad value}",
        "taints: [{key: 'a b', effect: NoSchedule}]",
        "taints: [{key: a, value: 'b c', effect: NoSchedule}]",
        "taints: [{key: fleet-reconciler.io/draining, effect: NoSchedule}]",
    ],
)
def test_malformed_label_or_taint_is_a_name_fault(part: str) -> None:
    """The API server would refuse the node."""
    assert [c for c, *_ in found(with_fleets(f"{{size: small, {part}}}"))] == ["name/label"]


def test_two_sectors_whose_fleets_share_a_full_name_are_duplicates() -> None:
    """Two fleets with one `fleet` tag would be taken for one."""
    size = "sizes: {b-small: {cpu: 1, memory: 1Gi, instance_types: [t3.small]}}\n"
    text = size + (
        "sectors: {a-b: {kind: cpu, fleets: [{size: small}]},"
        " a: {kind: cpu, fleets: [{size: b-small}]}}\n"
    )
    assert [code for code, *_ in found(text)] == ["sector/duplicate-fleet"]
