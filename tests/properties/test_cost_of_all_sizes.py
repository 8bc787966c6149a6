"""How near to the proven least purchases from all of EC2's sizes are, with the default budget."""

import pytest

from reconciler.planner.planner import plan
from tests.benchmarks import clusters, pods
from tests.benchmarks.cases import CASES, DATA, Size

LIMITS = {
    "govuk_eks_all_replicas": 0.03,
    "kk_presubmit_one_push": 0.03,
    "openb_all_8152": 0.01,
    "openb_cpu_only": 0.01,
    "prow_eks_periodic_jobs_all_at_once": 0.01,
}
"""Largest gap per set."""
SIZES = CASES["real-shapes"].sizes


@pytest.mark.skipif(not SIZES, reason=f"{DATA.name} is not beside the repository")
@pytest.mark.parametrize("size", SIZES, ids=lambda size: size.part)
def test_purchase_for_real_shapes_is_near_the_proven_least(size: Size) -> None:
    """Clusters would pay for nodes that a longer look shows to be unneeded."""
    made = plan(*CASES["real-shapes"].make(size))
    assert made.unplaceable == ()
    assert made.cost.gap <= LIMITS[size.part]


@pytest.mark.parametrize("seed", [4, 8, 9, 11])
def test_sixty_different_pods_on_all_types_cost_little_more_than_they_must(seed: int) -> None:
    """They cost a fifth too much: a search that gave up early kept the budget of the next one."""
    settings = clusters.catalogue_fleets()
    made = plan(clusters.snapshot_of(pods.different(60, seed), (), settings), settings)
    assert len(made.placements) == 60
    assert made.cost.gap <= 0.12
