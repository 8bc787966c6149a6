"""The last plan as it is served: encoded once per plan, unless it is too large to be kept."""

import hashlib
import threading
from collections.abc import Iterator
from typing import Any, Final

from reconciler.model.plan import Plan
from reconciler.records.plan import encoded_parts
from reconciler.web.status import plan_summary

KEPT_BYTES_MAX: Final = 8 << 20
"""The longest plan whose JSON is kept. Pods that no fleet can take have a reason of each fleet, and
anybody who may create pods makes thousands of them."""


class PlanBody:
    """The JSON of one plan.

    If it is too long to be kept, its parts are encoded for each request.
    """

    def __init__(self, plan: Plan) -> None:
        digest, self._length, kept = hashlib.sha256(), 0, []
        for part in encoded_parts(plan):
            digest.update(part)
            self._length += len(part)
            if self._length <= KEPT_BYTES_MAX:
                kept.append(part)
            else:
                kept.clear()
        self.plan: Final = plan
        self.tag: Final = f'"{digest.hexdigest()[:32]}"'
        self._kept = tuple(kept)

    def __len__(self) -> int:
        """Return its length in bytes."""
        return self._length

    def __iter__(self) -> Iterator[bytes]:
        """Return its parts, in order."""
        return iter(self._kept or encoded_parts(self.plan))


class EncodedPlan:
    """Caches one plan's JSON and summary; thread-safe.

    Requests for the same plan wait for the first encoding, so that many clients cost no more CPU
    than one; a plan that is too long to be kept is encoded for each of them, as it is sent.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._whole: PlanBody | None = None
        self._summary: tuple[Plan, dict[str, Any]] | None = None

    def whole(self, plan: Plan) -> PlanBody:
        """Return the plan's JSON with its entity tag."""
        with self._lock:
            if self._whole is None or self._whole.plan is not plan:
                self._whole = PlanBody(plan)
            return self._whole

    def summary(self, plan: Plan) -> dict[str, Any]:
        """Return the part of the status about the plan."""
        with self._lock:
            if self._summary is None or self._summary[0] is not plan:
                self._summary = (plan, plan_summary(plan))
            return self._summary[1]
