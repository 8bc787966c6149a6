"""Maps the type of a policy's arguments to the policy's function."""

from typing import assert_never

from reconciler.planner import descheduler_settings as arguments
from reconciler.planner.disruption.descheduler.facts import Facts, Proposals
from reconciler.planner.disruption.descheduler.policies import (
    duplicates,
    failed_pods,
    high_node_utilization,
    inter_pod_anti_affinity,
    low_node_utilization,
    node_affinity,
    node_taints,
    pod_life_time,
    too_many_restarts,
    topology_spread,
)


def proposals_of(  # noqa: C901, PLR0911 - one case per policy
    policy: arguments.PolicyArguments, facts: Facts
) -> Proposals:
    """Return the proposals of a policy."""
    match policy:
        case arguments.FailedPods():
            return failed_pods.proposals(policy, facts)
        case arguments.TooManyRestarts():
            return too_many_restarts.proposals(policy, facts)
        case arguments.PodLifeTime():
            return pod_life_time.proposals(policy, facts)
        case arguments.NodeTaints():
            return node_taints.proposals(policy, facts)
        case arguments.NodeAffinity():
            return node_affinity.proposals(policy, facts)
        case arguments.InterPodAntiAffinity():
            return inter_pod_anti_affinity.proposals(policy, facts)
        case arguments.RemoveDuplicates():
            return duplicates.proposals(policy, facts)
        case arguments.TopologySpread():
            return topology_spread.proposals(policy, facts)
        case arguments.LowNodeUtilization():
            return low_node_utilization.proposals(policy, facts)
        case arguments.HighNodeUtilization():
            return high_node_utilization.proposals(policy, facts)
        case _ as never:
            assert_never(never)
