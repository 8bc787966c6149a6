"""What a Terraform plan means for pods is planned where the cluster's files say it is."""

import json
from pathlib import Path

import pytest

from reconciler.bootstrap.pipeline.stages import CiOptions, impacts_on_pods
from reconciler.gitops.terraform_plan.planned import fleets
from tests.cli.inputs import listing, node, pod
from tests.unit.gitops.plans import fleet_change, plan

CONFIG = """\
cluster: analytics
default_sector: primary
sectors: {primary: {kind: memory, fleets: [{size: small}]}}
"""
REGION = "topology.kubernetes.io/region"


def test_pods_that_select_the_clusters_region_still_have_a_fleet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every such pod would be reported as one that no node takes, without `regions` in a config."""
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    config, cluster = tmp_path / "sectors.yaml", tmp_path / "cluster.json"
    config.write_text(CONFIG)
    running = pod("a", node="n1", spec={"nodeSelector": {REGION: "us-west-2"}})
    cluster.write_text(json.dumps(listing(node("n1", fleet="primary-small"), running)))
    impacts = impacts_on_pods(
        CiOptions(
            directory=tmp_path,
            plan_directory=tmp_path / "plan",
            config=config,
            cluster_files=(str(cluster),),
        )
    )
    assert impacts is not None
    (impact,) = impacts(fleets(plan(fleet_change(["delete", "create"]))))
    assert (impact.places, impact.unplaceable) == ({"primary-small": 1}, ())
