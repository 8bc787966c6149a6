"""`minDomains` of a spread over zones, for fleets with a fixed zone and for one over several."""

import json

import pytest

from tests.cli.inputs import Desk, pod

SPREAD = {
    "maxSkew": 1,
    "topologyKey": "topology.kubernetes.io/zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "minDomains": 3,
    "labelSelector": {"matchLabels": {"app": "web"}},
}


@pytest.mark.parametrize("zoned", [True, False], ids=["fixed zones", "one fleet over both"])
def test_no_node_is_bought_that_min_domains_leaves_empty(desk: Desk, *, zoned: bool) -> None:
    """With two zones and minDomains 3 each zone takes maxSkew pods: four of six never run."""
    zones = {"us-west-2a": "subnet-0a0a0a0a", "us-west-2b": "subnet-0b0b0b0b"}
    sizes = [f"{{size: std, zone: {zone}}}" for zone in zones] if zoned else ["{size: std}"]
    desk.write(
        "sectors.yaml",
        "cluster: analytics\nregions: [us-west-2]\ndefault_sector: p\n"
        "sizes: {std: {cpu: 4, memory: 16Gi, pods: 20, instance_types: [m5.xlarge]}}\n"
        "terraform: {ami: ami-0a0a0a0a, security_group_id: sg-0a0a0a0a,"
        f" private_subnet_ids: {json.dumps(zones)}}}\n"
        f"sectors: {{p: {{kind: memory, fleets: [{', '.join(sizes)}]}}}}\n",
    )
    made = desk.plan_of(
        *(
            pod(
                f"web-{i}",
                cpu="2",
                labels={"app": "web"},
                spec={"topologySpreadConstraints": [SPREAD]},
            )
            for i in range(6)
        )
    )
    assert sum(fleet["target"] for fleet in made["fleets"]) == 2
    assert len(made["unplaceable"]) == 4
