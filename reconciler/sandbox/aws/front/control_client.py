"""The control API from another process: what `front.control.Control` offers, over HTTP."""

from collections.abc import Mapping, Sequence
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

from reconciler.sandbox.control_api import TIMEOUT_SECONDS, ControlApi
from reconciler.sandbox.faults.aws import AwsFaults
from reconciler.sandbox.faults.script import to_document


class ControlClient:
    """Calls the control API of the emulated AWS at `url`.

    Every method raises `Unavailable` when no server answers there and `InputError` when the API
    refuses what was asked.
    """

    def __init__(self, url: str) -> None:
        netloc = urlsplit(url).netloc
        api = ControlApi(url, lambda: HTTPConnection(netloc, timeout=TIMEOUT_SECONDS))
        self._ask = api.ask

    def put_faults(self, faults: AwsFaults, seed: int = 0) -> None:
        """Put faults of a script in force, in addition to existing ones."""
        self._ask("POST", "faults", body={"seed": seed, **to_document(faults)})

    def faults(self) -> Mapping[str, Any]:
        """Return the faults in force as in a script, each with how often it has `shown`."""
        return self._ask("GET", "faults")

    def clear_faults(self) -> None:
        """Remove all faults of scripts."""
        self._ask("DELETE", "faults")

    def interrupt(
        self, instance_ids: Sequence[str], notice_seconds: float = 120.0
    ) -> Sequence[str]:
        """Give spot instances their interruption notice; they end after `notice_seconds`.

        Returns those that were there.
        """
        body = {"instance_ids": list(instance_ids), "notice_seconds": notice_seconds}
        return list(self._ask("POST", "interrupt", body=body)["interrupted"])

    def announce(
        self, kind: str, instance_ids: Sequence[str], starts_in_seconds: float = 0.0
    ) -> Sequence[str]:
        """Send a `rebalance` recommendation or a `scheduled-change` to EventBridge.

        Returns those that were there.
        """
        body = {
            "kind": kind,
            "instance_ids": list(instance_ids),
            "starts_in_seconds": starts_in_seconds,
        }
        return list(self._ask("POST", "announce", body=body)["announced"])

    def metadata_url(self, instance_id: str) -> str:
        """Return where the metadata of an instance is served: IMDSv2, as on 169.254.169.254."""
        query = {"instance_id": instance_id}
        return str(self._ask("GET", "metadata", query=query)["url"])

    def limit_capacity(self, **limit: str | int | None) -> None:
        """Put a capacity limit in force: the fields of `faults.CapacityLimit`."""
        self._ask("POST", "capacity", body=limit)

    def lift_capacity(self, **pool: str) -> None:
        """Remove the limit on `instance_type`, `zone`, `lifecycle`; without any, all limits."""
        self._ask("DELETE", "capacity", body=pool)

    def terminate(self, instance_ids: Sequence[str], reason: str = "user") -> Sequence[str]:
        """End fleet instances from outside; return those that existed.

        Args:
            instance_ids: Of any Region.
            reason: `user`, `spot-interruption` or `failure`.
        """
        body = {"instance_ids": list(instance_ids), "reason": reason}
        return list(self._ask("POST", "terminate", body=body)["terminated"])

    def calls(self, **wanted: str) -> Sequence[Mapping[str, Any]]:
        """Return the AWS calls so far that match `service`, `action`, `mutating`, `user_agent`."""
        return list(self._ask("GET", "calls", query=wanted)["calls"])

    def call_counts(self) -> Mapping[str, int]:
        """Return the number of AWS calls so far per `service:action`."""
        return dict(self._ask("GET", "calls", query={"service": "none"})["counts"])

    def forget_calls(self) -> None:
        """Clear the log of calls."""
        self._ask("DELETE", "calls")

    def enforce_iam(self, *, enforced: bool) -> None:
        """Let AWS check signatures and IAM policies, which proves that a policy is sufficient."""
        self._ask("POST", "iam", body={"enforced": enforced})

    def instances(
        self, *, since: int = -1, wait_seconds: float = 0.0
    ) -> tuple[int, Sequence[Mapping[str, Any]]]:
        """Return all fleet instances, once something changed after change number `since`.

        Args:
            since: The number an earlier call returned; -1 does not wait.
            wait_seconds: At most 60.
        """
        query = {"since": str(since), "wait_seconds": str(wait_seconds)}
        answer = self._ask("GET", "instances", query=query)
        return int(answer["change"]), list(answer["instances"])
