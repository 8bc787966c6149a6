"""Recorded demand without names."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.loops.workloads import workload_of
from reconciler.model.cluster import (
    Owner,
    PodAffinityTerm,
    PodPreference,
    Preference,
    TopologySpreadConstraint,
)
from reconciler.model.demand import (
    BudgetDemand,
    ClaimDemand,
    ClaimTemplate,
    ControllerDemand,
    CronDemand,
    DemandLine,
    PodDemand,
    PodEnd,
    PodVolumes,
)
from reconciler.model.frozen import FrozenMap
from reconciler.model.selectors import (
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    Requirement,
)
from reconciler.records.demand import Anonymiser, encode_line
from tests.builders import NOW, make_pod, make_spec

SECRET = "acme"
"""Part of every name that must not appear."""
APP = LabelSelector(
    match_labels=FrozenMap({"acme.io/app": "acme-web"}),
    match_expressions=(
        Requirement(key="acme-tier", operator="In", values=("acme-a", "acme-b")),
        Requirement(key="acme-old", operator="DoesNotExist"),
    ),
)
TERM = PodAffinityTerm(
    topology_key="kubernetes.io/hostname",
    selector=APP,
    namespaces=frozenset({"acme-team"}),
    namespace_selector=LabelSelector(
        match_labels=FrozenMap({"acme-owner": "acme-x", "kubernetes.io/metadata.name": "acme-team"})
    ),
    match_label_keys=("acme-hash",),
)
SPEC = replace(
    make_spec("500m", "1Gi"),
    node_selector=FrozenMap({"sector": "batch"}),
    node_affinity=NodeSelector(
        terms=(
            NodeSelectorTerm(
                expressions=(
                    Requirement(key="size", operator="In", values=("small",)),
                    Requirement(
                        key="kubernetes.io/hostname", operator="NotIn", values=("ip-10-0-0-1.acme",)
                    ),
                ),
                fields=(Requirement(key="metadata.name", operator="In", values=("acme-node",)),),
            ),
        )
    ),
    node_preferences=(
        Preference(
            weight=1,
            term=NodeSelectorTerm(
                fields=(Requirement(key="metadata.name", operator="In", values=("acme-node",)),)
            ),
        ),
    ),
    scheduler_name="acme-scheduler",
    pod_affinity=(TERM,),
    pod_anti_affinity=(TERM,),
    pod_preferences=(PodPreference(weight=3, term=TERM),),
    topology_spread=(
        TopologySpreadConstraint(
            topology_key="topology.kubernetes.io/zone",
            max_skew=1,
            hard=True,
            selector=APP,
            match_label_keys=("acme-hash",),
        ),
    ),
)
COMMON: dict[str, Any] = {
    "namespace": "acme-team",
    "labels": FrozenMap(
        {"acme.io/app": "acme-web", "acme-tier": "acme-a", "openai/do-not-drain": "true"}
    ),
    "annotations": FrozenMap(
        {
            "acme.io/note": "acme",
            "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes": "acme-volume",
            "fleet-reconciler.io/do-not-disrupt": "true",
            "fleet-reconciler.io/note": "acme",
            "karpenter.sh/do-not-disrupt": "1h30m",
        }
    ),
}
LINES: list[DemandLine] = [
    PodDemand(
        at=NOW,
        id="acme-pod",
        spec=SPEC,
        controller=Owner(kind="Job", name="acme-job", uid="acme-uid"),
        volumes=PodVolumes(claims=("acme-data",), ephemeral=("acme-cache",)),
        **COMMON,
    ),
    PodEnd(at=NOW, id="acme-pod"),
    ControllerDemand(
        at=NOW, controller=Owner(kind="Deployment", name="acme-web"), spec=SPEC, **COMMON
    ),
    BudgetDemand(at=NOW, id="acme-budget", namespace="acme-team", selector=APP, min_available=1),
    CronDemand(at=NOW, id="acme-cron", schedule="@daily", spec=SPEC, **COMMON),
    ClaimDemand(at=NOW, id="acme-data", namespace="acme-team", zone="us-west-2a",
                storage_class="acme-fast", driver="csi.acme.io"),
    ControllerDemand(
        at=NOW, controller=Owner(kind="StatefulSet", name="acme-db"),
        claim_templates=(ClaimTemplate(name="acme", storage_class="acme-fast"),),
    ),
]  # fmt: skip


@pytest.mark.parametrize("line", LINES, ids=lambda line: type(line).__name__)
def test_no_name_is_left(line: Any) -> None:
    """A demand that is sent to somebody would tell what a company runs."""
    assert SECRET in encode_line(line).decode()
    assert SECRET not in encode_line(Anonymiser().line(line)).decode()


def test_rules_between_pods_mean_what_they_meant() -> None:
    """A replay would spread, repel and protect other pods than the cluster did."""
    names = Anonymiser()
    pod, end, _, budget, _, claim, database = (names.line(line) for line in LINES)
    assert isinstance(pod, PodDemand)
    assert isinstance(end, PodEnd)
    assert isinstance(budget, BudgetDemand)
    assert budget.selector is not None
    assert budget.selector.matches(pod.labels)
    assert not budget.selector.matches(FrozenMap({}))
    assert (end.id, budget.namespace) == (pod.id, pod.namespace)
    assert isinstance(claim, ClaimDemand)
    assert isinstance(database, ControllerDemand)
    assert ((claim.id,), claim.namespace) == (pod.volumes.claims, pod.namespace)
    assert database.claim_templates[0].storage_class == claim.storage_class != ""
    (affinity,) = pod.spec.pod_affinity
    assert affinity.selector == budget.selector
    assert affinity.namespaces == {pod.namespace}
    assert affinity.namespace_selector is not None
    named = affinity.namespace_selector.match_labels["kubernetes.io/metadata.name"]
    assert named == pod.namespace


def test_what_a_config_names_stays() -> None:
    """No fleet would serve the pods of a replay."""
    pod = Anonymiser().line(LINES[0])
    assert isinstance(pod, PodDemand)
    assert pod.spec.requests == SPEC.requests
    assert pod.spec.node_selector == {"sector": "batch"}
    assert pod.annotations["fleet-reconciler.io/do-not-disrupt"] == "true"
    assert pod.annotations["karpenter.sh/do-not-disrupt"] == "1h30m"
    assert "acme.io/note" not in pod.annotations
    claim = ClaimDemand(at=NOW, id="data", zone="us-west-2a")
    told = Anonymiser().line(claim)
    assert told == replace(claim, id=told.id if isinstance(told, ClaimDemand) else "")
    assert pod.labels.get("openai/do-not-drain") == "true", "what keeps pods does so in a replay"
    assert pod.spec.node_affinity is not None
    assert pod.spec.node_affinity.terms[0].expressions[0].values == ("small",)


def test_label_that_is_the_name_of_a_node_is_replaced_as_the_name_is() -> None:
    """Selectors of one node told the private domain of a company, though names are replaced."""
    name = "ip-10-0-0-1.acme"
    selector = FrozenMap({"kubernetes.io/hostname": name, "sector": "batch"})
    pod = PodDemand(at=NOW, id="pod", spec=replace(SPEC, node_selector=selector))
    found = Anonymiser().line(pod)
    assert isinstance(found, PodDemand)
    assert SECRET not in encode_line(found).decode()
    hashed = found.spec.node_selector["kubernetes.io/hostname"]
    assert found.spec.node_selector == {"kubernetes.io/hostname": hashed, "sector": "batch"}
    assert found.spec.node_affinity is not None
    assert found.spec.node_affinity.terms[0].expressions[1].values == (hashed,)


def test_pods_are_still_of_their_deployments_and_cron_jobs() -> None:
    """Pods of one Deployment had a controller each, and no blast radius held."""
    names = Anonymiser()
    labels = FrozenMap({"app": "acme", "pod-template-hash": "7d9f8"})
    pods = [
        PodDemand(at=NOW, id=name, spec=SPEC, controller=Owner(kind=kind, name=name), labels=labels)
        for kind, name in (("ReplicaSet", "acme-7d9f8"), ("Job", "acme-29384756"), ("Job", "acme"))
    ]
    found = [names.line(pod) for pod in pods]
    web, cron, job = (
        workload_of(make_pod("x", owner=each.controller, labels=each.labels))
        for each in found
        if isinstance(each, PodDemand)
    )
    assert (web.kind, cron.kind, job.kind) == ("Deployment", "CronJob", "Job")
    assert web.name == cron.name == job.name
    assert SECRET not in web.name
    made = names.line(
        ControllerDemand(at=NOW, controller=Owner(kind="Deployment", name="acme"), replicas=1)
    )
    assert isinstance(made, ControllerDemand)
    assert made.controller.name == web.name


def test_hashes_of_two_recordings_have_nothing_in_common() -> None:
    """Whoever has a list of likely names would try them all."""
    first, second = (Anonymiser().line(LINES[0]) for _ in range(2))
    assert isinstance(first, PodDemand)
    assert isinstance(second, PodDemand)
    assert first.id != second.id
    same = [Anonymiser(b"a key").line(LINES[0]) for _ in range(2)]
    assert same[0] == same[1]
