"""Describes actions in words for logs, metrics and pages: name, subject, before and after."""

from dataclasses import dataclass
from typing import assert_never

from reconciler.model.actions import (
    AnnotateNode,
    AnyAction,
    DeleteNode,
    DeletePod,
    EvictPod,
    SetCapacity,
    TaintNode,
    TerminateInstance,
    UntaintNode,
)

Value = str | int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionText:
    """Describes one action for people."""

    name: str
    """The action's name in the JSON contract, such as `set-capacity`."""
    subject: str
    """The object: a fleet, a node, a pod, an instance."""
    region: str = ""
    """Of a fleet, since another region may have one of the same name; else empty."""
    facts: dict[str, Value]
    """Where it is: fleet, region, node, instance, as far as they apply; of a node's taints and
    annotations also which one (`key`)."""
    before: Value = None
    after: Value = None

    @property
    def identity(self) -> tuple[Value, ...]:
        """Return what repeats of an action share and no other has, whatever their values are."""
        return self.name, self.named, self.facts.get("key")

    @property
    def named(self) -> str:
        """Return the object as no other one is named."""
        return f"{self.subject} ({self.region})" if self.region else self.subject


def describe(action: AnyAction) -> ActionText:
    """Return the action in words."""
    match action:
        case SetCapacity():
            return ActionText(
                name="set-capacity",
                subject=action.fleet,
                region=action.region,
                facts={"fleet": action.fleet, "fleet_id": action.id, "region": action.region},
                before=action.from_capacity,
                after=action.to_capacity,
            )
        case TerminateInstance():
            return ActionText(
                name="terminate-instance",
                subject=action.instance,
                facts={
                    "instance": action.instance,
                    "node": action.node,
                    "fleet": action.fleet,
                    "region": action.region,
                },
                after="terminated, target lowered" if action.decrement else "terminated",
            )
        case EvictPod():
            return _of_pod("evict-pod", action)
        case DeletePod():
            return _of_pod("delete-pod", action)
        case _:
            return _of_node(action)


def _of_pod(name: str, action: EvictPod | DeletePod) -> ActionText:
    facts: dict[str, Value] = {"pod": str(action.pod), "node": action.node}
    return ActionText(name=name, subject=str(action.pod), facts=facts, before=action.node)


def _of_node(action: TaintNode | UntaintNode | AnnotateNode | DeleteNode) -> ActionText:
    facts: dict[str, Value] = {"node": action.node}
    match action:
        case TaintNode(taint=taint):
            facts["key"] = taint.key
            text = f"{taint.key}={taint.value}:{taint.effect}"
            return ActionText(name="taint-node", subject=action.node, facts=facts, after=text)
        case UntaintNode():
            facts["key"] = action.key
            return ActionText(
                name="untaint-node", subject=action.node, facts=facts, before=action.key
            )
        case AnnotateNode():
            facts["key"] = action.key
            return ActionText(
                name="annotate-node", subject=action.node, facts=facts, after=action.value
            )
        case DeleteNode():
            return ActionText(name="delete-node", subject=action.node, facts=facts)
        case _ as never:
            assert_never(never)
