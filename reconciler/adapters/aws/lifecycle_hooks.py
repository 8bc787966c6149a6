"""Lifecycle hooks of Auto Scaling groups: completes one, or extends its time."""

from contextlib import suppress
from typing import Any

from reconciler.adapters.aws.clients import Clients
from reconciler.adapters.aws.retries import change
from reconciler.model.errors import NotFound, Refused
from reconciler.model.notices import LifecycleAction


def complete_action(clients: Clients, hook: LifecycleAction) -> None:
    """Let the instance end; an instance that the hook no longer holds is ending already.

    Raises:
        PortError: Auto Scaling did not accept it.
    """
    call = clients.autoscaling(hook.region, changing=True).complete_lifecycle_action
    with suppress(NotFound, Refused):
        _send(clients, hook, call, LifecycleActionResult="CONTINUE")


def record_heartbeat(clients: Clients, hook: LifecycleAction) -> None:
    """Restart the hook's timeout.

    Raises:
        PortError: Auto Scaling did not accept it.
    """
    call = clients.autoscaling(hook.region, changing=True).record_lifecycle_action_heartbeat
    _send(clients, hook, call)


def _send(clients: Clients, hook: LifecycleAction, call: Any, **arguments: str) -> None:
    change(
        f"lifecycle hook {hook.name} of {hook.group}",
        call,
        clients.attempts,
        AutoScalingGroupName=hook.group,
        LifecycleHookName=hook.name,
        LifecycleActionToken=hook.token,
        **arguments,
    )
