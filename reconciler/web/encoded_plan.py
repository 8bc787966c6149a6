"""The last plan as it is served, encoded once per plan and not once per request."""

import hashlib
import threading
from typing import Any

from reconciler.model.plan import Plan
from reconciler.records.plan import encode_plan
from reconciler.web.status import plan_summary


class EncodedPlan:
    """Caches one plan's bytes and summary; thread-safe.

    Requests for the same plan wait for the first encoding, so that many clients cost no more CPU
    than one.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._whole: tuple[Plan, bytes, str] | None = None
        self._summary: tuple[Plan, dict[str, Any]] | None = None

    def whole(self, plan: Plan) -> tuple[bytes, str]:
        """Return the plan's JSON and its entity tag."""
        with self._lock:
            if self._whole is None or self._whole[0] is not plan:
                body = encode_plan(plan)
                self._whole = (plan, body, f'"{hashlib.sha256(body).hexdigest()[:32]}"')
            return self._whole[1], self._whole[2]

    def summary(self, plan: Plan) -> dict[str, Any]:
        """Return the part of the status about the plan."""
        with self._lock:
            if self._summary is None or self._summary[0] is not plan:
                self._summary = (plan, plan_summary(plan))
            return self._summary[1]
