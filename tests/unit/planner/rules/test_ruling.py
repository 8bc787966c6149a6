"""What may be moved voluntarily, rule by rule and all together (docs/why-a-node-stays.md)."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from reconciler.model.actions import DO_NOT_DISRUPT, DO_NOT_DRAIN, DRAINING_TAINT
from reconciler.model.cluster import Pod, PodDisruptionBudget, Toleration
from reconciler.model.frozen import FrozenMap
from reconciler.model.text import rfc3339
from reconciler.planner.pod_disruption_budgets import BudgetLedger
from reconciler.planner.rules import Subject, Terms, Verdict, judge_of, rule_on
from tests.builders import NOW, ago, make_pod, make_spec, selecting

SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"


def running(**changed: Any) -> Pod:
    """A pod of a ReplicaSet on a node; annotations as a plain mapping."""
    annotations = FrozenMap(changed.pop("annotations", {}))
    return make_pod(node="n", annotations=annotations, **changed)


def ruled(pod: Pod, budgets: int = 0, **terms: Any) -> tuple[Verdict, str]:
    """The ruling of all rules together."""
    ruling = rule_on(Subject(pod=pod, budgets=budgets), Terms(**terms))
    return ruling.verdict, ruling.code


def test_pod_of_a_replica_set_may_move() -> None:
    """Nothing would ever be consolidated."""
    assert ruled(running()) == (Verdict.OK, "")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (DO_NOT_DISRUPT, "true"),
        (SAFE, "false"),
        ("karpenter.sh/do-not-disrupt", "true"),
        ("cluster-autoscaler.kubernetes.io/scale-down-disabled", "true"),
    ],
)
def test_annotation_of_any_autoscaler_keeps_the_pod(key: str, value: str) -> None:
    """Whoever moves from another autoscaler would lose the pods they had protected."""
    assert ruled(running(annotations={key: value})) == (Verdict.BLOCK, "do-not-disrupt")
    other = "false" if value == "true" else "true"
    assert ruled(running(annotations={key: other}))[0] is Verdict.OK


@pytest.mark.parametrize(
    ("value", "started_at", "until"),
    [
        ("5m", ago(60), NOW + timedelta(minutes=4)),
        ("1h30m", ago(60), NOW + timedelta(minutes=89)),
        ("240h", ago(0), NOW + timedelta(days=10)),
        ("5m", None, NOW + timedelta(minutes=5)),
        ("5m", ago(-3600), NOW + timedelta(minutes=5)),
        ("1m", ago(60), None),
        ("5 m", ago(60), None),
        ("-5m", ago(60), None),
        ("0", ago(60), None),
        ("yes", ago(60), None),
        ("9" * 60 + "h", ago(60), None),
    ],
)
def test_karpenters_annotation_may_keep_a_pod_for_a_time_from_its_start(
    value: str, started_at: datetime | None, until: datetime | None
) -> None:
    """Pods that Karpenter leaves alone for their first hours were moved at once."""
    notes = {"karpenter.sh/do-not-disrupt": value}
    pod = running(annotations=notes, started_at=started_at)
    ruling = judge_of(Terms(), BudgetLedger(()).coverage, NOW).ruling(pod)
    assert (ruling.code, ruling.until) == ("do-not-disrupt" if until else "", until)
    assert not until or rfc3339(until) in ruling.reason
    assert judge_of(Terms(overdue=True), BudgetLedger(()).coverage, NOW).ruling(pod).code == ""


def test_pod_kept_for_a_time_is_judged_by_its_own_start_and_the_clock() -> None:
    """Rulings are remembered, from plan to plan and for replicas: they would be kept for good."""
    spec, notes = make_spec(), FrozenMap({"karpenter.sh/do-not-disrupt": "1h"})
    old, young = (
        make_pod(name, node="n", spec=spec, annotations=notes, started_at=ago(seconds))
        for name, seconds in (("old", 3700), ("young", 60))
    )
    coverage = BudgetLedger(()).coverage
    for at, codes in (
        (NOW, ["", "do-not-disrupt"]),
        (NOW + timedelta(hours=1), ["", ""]),
        (NOW - timedelta(hours=1), ["do-not-disrupt", "do-not-disrupt"]),
    ):
        judge = judge_of(Terms(), coverage, at)
        assert [r.code for _, r in judge.rulings([old, young])] == codes


@pytest.mark.parametrize(
    ("value", "stays"), [("true", True), ("True", True), ("1", True), ("false", False), ("", False)]
)
def test_label_of_kubernetes_ec2_autoscaler_keeps_the_pod(value: str, *, stays: bool) -> None:
    """Its users protect training runs with it, and would lose them at the switch-over."""
    pod = running(labels={DO_NOT_DRAIN: value})
    assert ruled(pod)[1] == ("do-not-disrupt" if stays else "")
    daemon = running(owner="DaemonSet", labels={DO_NOT_DRAIN: value})
    assert ruled(daemon)[1] == ("do-not-disrupt" if stays else ruled(running(owner="DaemonSet"))[1])


def test_label_that_keeps_a_pod_keeps_none_of_its_replicas() -> None:
    """Rulings are remembered for pods that share their spec, whatever labels they have."""
    spec = make_spec()
    pods = [running(spec=spec), running(spec=spec, labels={DO_NOT_DRAIN: "true"})]
    judge = judge_of(Terms(), BudgetLedger(()).coverage, NOW)
    assert [judge.ruling(pod).code for pod in (*pods, *reversed(pods))] == [
        "",
        "do-not-disrupt",
        "do-not-disrupt",
        "",
    ]


@pytest.mark.parametrize(
    ("toleration", "stays"),
    [
        (Toleration(operator="Exists"), True),
        (Toleration(key=DRAINING_TAINT, operator="Exists", effect="NoSchedule"), True),
        (Toleration(key=DRAINING_TAINT, value="scale-in", effect="NoSchedule"), True),
        (Toleration(key=DRAINING_TAINT, value="rolling-update"), True),
        (Toleration(key=DRAINING_TAINT, value="maintenance"), False),
        (Toleration(operator="Exists", effect="NoExecute"), False),
        (Toleration(key="team", operator="Exists"), False),
    ],
)
def test_pod_that_would_return_to_the_emptied_node_keeps_it(
    toleration: Toleration, *, stays: bool
) -> None:
    """Such a replica was evicted six hundred times in three hours, and came back each time."""
    pod = running(tolerations=(toleration,))
    assert ruled(pod)[1] == ("tolerates-draining" if stays else "")
    assert ruled(pod, overdue=True) == (Verdict.OK, "")


@pytest.mark.parametrize("owner", ["DaemonSet", "Node"])
def test_annotation_on_a_daemon_keeps_its_node_too(owner: str) -> None:
    """A storage daemon that rebuilds would lose its node."""
    pod = running(owner=owner, mirror=owner == "Node", annotations={DO_NOT_DISRUPT: "true"})
    assert ruled(pod) == (Verdict.BLOCK, "do-not-disrupt")


@pytest.mark.parametrize(
    ("changed", "code", "term"),
    [
        ({"owner": None}, "no-controller", "move_bare_pods"),
        ({"local_storage": True}, "local-storage", "move_local_storage"),
        ({"namespace": "kube-system"}, "kube-system", "move_system_pods"),
    ],
)
def test_bar_holds_until_the_config_or_the_owner_lifts_it(
    changed: dict[str, Any], code: str, term: str
) -> None:
    """Data or a bare pod would be gone for good; or an operator's word would count for nothing."""
    assert ruled(running(**changed)) == (Verdict.BLOCK, code)
    assert ruled(running(**changed), **{term: True})[0] is Verdict.OK
    assert ruled(running(annotations={SAFE: "true"}, **changed))[0] is Verdict.OK


def test_started_job_is_never_moved_but_by_its_owners_word() -> None:
    """Hours of work would begin anew."""
    assert ruled(running(owner="Job")) == (Verdict.BLOCK, "started-job")
    assert ruled(running(owner="Job", phase="Pending")) == (Verdict.BLOCK, "started-job")
    assert ruled(running(owner="Job", annotations={SAFE: "true"}))[0] is Verdict.OK
    assert ruled(running(owner="Job", phase="Succeeded"))[0] is Verdict.SKIP


@pytest.mark.parametrize("owner", ["Pod", "Workflow", "TaskRun", "PyTorchJob"])
def test_pod_that_its_controller_runs_to_completion_is_a_jobs(owner: str) -> None:
    """Executors of Spark and steps of Argo and Tekton lost hours of work as Jobs never do."""
    step: dict[str, Any] = {"owner": owner, "ends_by_itself": True}
    assert ruled(running(**step)) == (Verdict.BLOCK, "started-job")
    assert ruled(running(**step, phase="Pending")) == (Verdict.BLOCK, "started-job")
    assert ruled(running(**step, annotations={SAFE: "true"}))[0] is Verdict.OK
    assert ruled(running(**step, phase="Failed"))[0] is Verdict.SKIP
    assert ruled(running(owner=owner))[0] is Verdict.OK, "restartPolicy Always: a service"


def test_ruling_of_a_pod_that_runs_to_completion_names_its_owner() -> None:
    """Who asks why the node stays looks for a Job that is not there."""
    ruling = rule_on(Subject(pod=running(owner="Workflow", ends_by_itself=True)), Terms())
    assert ruling.reason == (
        "it has started, belongs to a controller of kind Workflow and runs to completion"
    )
    longest = rule_on(Subject(pod=running(owner="W" * 1_000, ends_by_itself=True)), Terms())
    assert len(longest.reason) < 200


def test_bare_pod_that_ends_by_itself_is_ruled_as_a_bare_pod() -> None:
    """`move_bare_pods` says that such pods may be lost."""
    bare: dict[str, Any] = {"owner": None, "ends_by_itself": True}
    assert ruled(running(**bare)) == (Verdict.BLOCK, "no-controller")
    assert ruled(running(**bare), move_bare_pods=True)[0] is Verdict.OK


def test_kube_system_pod_with_a_budget_may_move() -> None:
    """A node with DNS on it would stay for ever although DNS says how many it can spare."""
    assert ruled(running(namespace="kube-system"), budgets=1)[0] is Verdict.OK


def test_two_budgets_block_whatever_the_owner_says() -> None:
    """The Eviction API answers 500 for such pods: the drain would never end."""
    safe = running(annotations={SAFE: "true"})
    assert ruled(safe, budgets=1)[0] is Verdict.OK
    assert ruled(safe, budgets=2) == (Verdict.BLOCK, "two-budgets")


def test_unreadable_budget_blocks_its_namespace() -> None:
    """What it protects is not known."""
    ruling = rule_on(Subject(pod=running(), budgets_readable=False), Terms())
    assert (ruling.verdict, ruling.code) == (Verdict.BLOCK, "unreadable-budget")


def test_longest_grace_period_must_fit_the_limit() -> None:
    """A database would be killed in the middle of its shutdown."""
    slow = running(termination_grace_seconds=121)
    assert ruled(slow) == (Verdict.BLOCK, "long-grace")
    assert ruled(slow, graceful_termination_max_seconds=121)[0] is Verdict.OK


def test_critical_pods_stay_only_where_the_policy_asks_for_it() -> None:
    """The rescheduler would move what keeps the cluster alive; scale-in would keep every node."""
    critical = running(priority=2_000_000_000)
    assert ruled(critical)[0] is Verdict.OK
    assert ruled(critical, critical_pods_stay=True) == (Verdict.BLOCK, "critical")
    almost = running(priority=1_999_999_999)
    assert ruled(almost, critical_pods_stay=True)[0] is Verdict.OK


@pytest.mark.parametrize(
    ("changed", "verdict", "code"),
    [
        ({"owner": "DaemonSet"}, Verdict.SKIP, "daemonset"),
        ({"owner": "Node", "mirror": True}, Verdict.SKIP, "mirror"),
        ({"phase": "Failed"}, Verdict.SKIP, "finished"),
        ({"deleting": True}, Verdict.WAIT, "deleting"),
        ({"deleting": True, "owner": None}, Verdict.WAIT, "deleting"),
        ({"unreadable": True}, Verdict.BLOCK, "unreadable"),
        ({"unreadable": True, "owner": "DaemonSet"}, Verdict.BLOCK, "unreadable"),
    ],
)
def test_pod_that_needs_no_moving_is_distinguished(
    changed: dict[str, Any], verdict: Verdict, code: str
) -> None:
    """Daemons would be evicted in vain, pods evicted twice, or unread ones lost."""
    assert ruled(running(**changed)) == (verdict, code)


def test_judge_tells_pods_apart_that_share_a_spec() -> None:
    """One replica's ruling would be taken for that of another that is protected."""
    plain = running(name="a")
    kept = make_pod("b", node="n", spec=plain.spec, annotations=FrozenMap({DO_NOT_DISRUPT: "true"}))
    bare = make_pod("c", node="n", spec=plain.spec, owner=None)
    judge = judge_of(Terms(), BudgetLedger(()).coverage, NOW)
    assert [r.code for _, r in judge.rulings([plain, kept, bare])] == [
        "",
        "do-not-disrupt",
        "no-controller",
    ]


def test_judge_of_a_later_plan_sees_the_budgets_that_came_and_went() -> None:
    """A ruling remembered too long would move a pod that a budget forbids by now, or keep one."""
    pod = make_pod(
        "a", node="n", namespace="kube-system", labels={"app": "dns"}, owner="ReplicaSet"
    )

    def budget(name: str, *, unreadable: bool = False) -> PodDisruptionBudget:
        return PodDisruptionBudget(
            namespace="kube-system",
            name=name,
            selector=None if unreadable else selecting(app="dns"),
            disruptions_allowed=1,
            unreadable=unreadable,
        )

    one, two, unread = budget("one"), budget("two"), budget("unread", unreadable=True)
    codes = [
        judge_of(Terms(), BudgetLedger(budgets).coverage, NOW).ruling(pod).code
        for budgets in ([], [one], [one, two], [one], [one, unread], [])
    ]
    assert codes == ["kube-system", "", "two-budgets", "", "unreadable-budget", "kube-system"]
