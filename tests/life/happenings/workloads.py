"""Pods come, finish, are scaled, protected and deleted; DaemonSets and budgets are made."""

from typing import Any

from reconciler.adapters.memory import BudgetShape
from reconciler.model.actions import DO_NOT_DISRUPT
from reconciler.model.cluster import DaemonSet, Owner, Pod, PodSpec
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import PodKey
from tests.builders import make_spec, selecting
from tests.life.happenings.acting import Acting
from tests.life.left_alone import does_work_that_ends
from tests.life.programs import Step
from tests.life.stage import Stage

NAMESPACE = "ns"
CPUS = ("250m", "500m", "1", "1500m", "2", "3", "3500m", "100m")


class Workloads(Acting):
    """What users do."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._serial = 0
        self._specs: dict[tuple[object, ...], PodSpec] = {}

    def _create(
        self, step: Step, kind: str, count: int = 1, sector: str = "primary", **changed: Any
    ) -> list[PodKey]:
        """Pods of one workload, with one spec."""
        self._serial += 1
        name = f"{kind.lower()}-{self._serial}"
        owner = None if kind == "Bare" else Owner(kind=kind, name=name, uid=name)
        labels = changed.pop("labels", {})
        annotations = changed.pop("annotations", {})
        shape = (CPUS[step.a], sector, *sorted(changed.items(), key=str))
        if shape not in self._specs:
            spec = make_spec(
                str(changed.pop("cpu", CPUS[step.a])), "256Mi", sector=sector, **changed
            )
            self._specs[shape] = spec
        made = []
        for number in range(count):
            pod = Pod(
                key=PodKey(namespace=NAMESPACE, name=f"{name}-{number}"),
                spec=self._specs[shape],
                owner=owner,
                labels=FrozenMap({"app": name, **dict(labels)}),
                annotations=FrozenMap(annotations),
            )
            made.append(self.world.add_pod(pod))
        return made

    def _deployment(self, step: Step) -> None:
        self._create(step, "ReplicaSet", 1 + step.b % 5)

    def _job(self, step: Step) -> None:
        """A Job, or a workflow whose steps are not run again."""
        if step.b < 6:
            self._create(step, "Job", 1 + step.b % 3)
        else:
            self._create(step, "Workflow", 1 + step.b % 3, ends_by_itself=True)

    def _stateful(self, step: Step) -> None:
        self._create(step, "StatefulSet", 1 + step.b % 3)

    def _bare(self, step: Step) -> None:
        self._create(step, "Bare")

    def _guarded(self, step: Step) -> None:
        for key in self._create(step, "ReplicaSet", annotations={DO_NOT_DISRUPT: "true"}):
            self.guarded_at[key.uid] = self._now()

    def _budgeted(self, step: Step) -> None:
        """A Deployment whose budget lets one, or none, of its pods be away."""
        count = 1 + step.b % 4
        keys = self._create(step, "ReplicaSet", count)
        pod = self.world.objects.find(keys[0])
        assert pod is not None
        self.world.add_budget(
            BudgetShape(
                namespace=NAMESPACE,
                name=f"budget-{self._serial}",
                selector=selecting(app=pod.labels["app"]),
                min_available=max(0, count - 1 + step.b // 4),
            )
        )

    def _disk(self, step: Step) -> None:
        self._create(step, "ReplicaSet", local_storage=True)

    def _slow(self, step: Step) -> None:
        self._create(step, "ReplicaSet", termination_grace_seconds=90 if step.b % 2 else 600)

    def _balloon(self, step: Step) -> None:
        self._create(step, "ReplicaSet", 1 + step.b % 2, priority=-10)

    def _urgent(self, step: Step) -> None:
        self._create(step, "ReplicaSet", 1 + step.b % 3, priority=1000)

    def _batch(self, step: Step) -> None:
        self._create(step, "Job" if step.b % 2 else "ReplicaSet", 1 + step.b % 4, sector="batch")

    def _huge(self, step: Step) -> None:
        self._create(step, "ReplicaSet", cpu="64" if step.b % 2 else "6")

    def _pinned(self, step: Step) -> None:
        """A pod that names a fleet."""
        fleet = ("primary-small", "primary-large", "primary-steady")[step.b % 3]
        self._create(step, "ReplicaSet", node_selector=FrozenMap({"fleet": fleet}))

    # Changes of workloads ----------------------------------------------------------------------

    def _pods(self, kind: str | None = None) -> list[Pod]:
        return [
            pod
            for pod in self.world.pods()
            if pod.key.namespace == NAMESPACE
            and not (pod.finished or pod.deleting)
            and kind in {None, pod.owner.kind if pod.owner else "Bare"}
        ]

    def _pod(self, step: Step, kind: str | None = None) -> Pod | None:
        found = self._pods(kind)
        return found[(step.a * 8 + step.b) % len(found)] if found else None

    def _finish(self, step: Step) -> None:
        bound = [pod for pod in self._pods() if pod.node_name and does_work_that_ends(pod)]
        if bound:
            self.world.finish_pod(bound[(step.a * 8 + step.b) % len(bound)].key)

    def _remove(self, step: Step) -> None:
        """A whole workload is deleted."""
        pod = self._pod(step)
        if pod is not None:
            for each in self._pods():
                if each.labels["app"] == pod.labels["app"]:
                    self.world.remove_pod(each.key)

    def _scale(self, step: Step) -> None:
        pod = self._pod(step, "ReplicaSet")
        if pod is None:
            return
        if step.b % 2:
            self.world.remove_pod(pod.key)
            return
        for _ in range(1 + step.b // 2):
            self._serial += 1
            key = PodKey(namespace=NAMESPACE, name=f"more-{self._serial}")
            fresh = Pod(
                key=key, spec=pod.spec, owner=pod.owner, labels=pod.labels,
                annotations=pod.annotations,
            )  # fmt: skip
            uid = self.world.add_pod(fresh).uid
            if pod.annotations:
                self.guarded_at[uid] = self._now()

    def _delete_pod(self, step: Step) -> None:
        pod = self._pod(step)
        if pod is not None:
            self.world.stop_pod(pod.key)

    def _guard(self, step: Step) -> None:
        pod = self._pod(step)
        if pod is not None:
            self.world.annotate_pod(pod.key, {DO_NOT_DISRUPT: "true"})
            self.guarded_at.setdefault(pod.key.uid, self._now())

    def _unguard(self, step: Step) -> None:
        pod = self._pod(step)
        if pod is not None:
            self.world.annotate_pod(pod.key, {})
            self.guarded_at.pop(pod.key.uid, None)

    def _daemon(self, step: Step) -> None:
        if len(self.world.objects.daemon_sets) < 2:
            self._serial += 1
            spec = make_spec(("50m", "200m")[step.b % 2], "64Mi")
            self.world.add_daemon_set(
                DaemonSet(namespace="kube-system", name=f"daemon-{self._serial}", spec=spec)
            )
