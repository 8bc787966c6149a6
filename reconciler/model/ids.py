"""Types of names and ids, so that one is never passed for another."""

from dataclasses import dataclass
from typing import Final, NamedTuple, NewType

NodeName = NewType("NodeName", str)
InstanceId = NewType("InstanceId", str)
FleetId = NewType("FleetId", str)
"""`fleet-…` for EC2 Fleets, the group's name for Auto Scaling groups."""
REGION_FORM: Final = r"[a-z]{2,4}(?:-[a-z]+)+-\d{1,2}"
"""What the name of an AWS Region matches, as a part of other patterns."""
REGION_PATTERN: Final = f"^{REGION_FORM}$"
"""The same, as a pattern by itself."""
Region = NewType("Region", str)
ResourceName = str
"""`cpu`, `memory`, `pods`, `ephemeral-storage`, `nvidia.com/gpu` …"""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class PodKey:
    """A pod: namespace and name for people, uid for identity (names are reused)."""

    namespace: str
    name: str
    uid: str = ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class FleetKey(NamedTuple):
    """A fleet of the sector config in one region; the same fleet may exist in several.

    A tuple: plans look fleets up tens of thousands of times, and tuples are hashed without a call.
    """

    name: str
    region: Region

    def __str__(self) -> str:
        return f"{self.name} ({self.region})"


def instance_id_of(provider_id: str) -> InstanceId | None:
    """Return the EC2 instance in a node's `spec.providerID` (`aws:///us-west-2a/i-0abc…`).

    A bare `i-0abc…` is accepted too. Source: cloud-provider-aws, KubernetesInstanceID.
    """
    scheme, _, rest = provider_id.rpartition("://")
    tail = rest.rsplit("/", 1)[-1]
    return InstanceId(tail) if scheme in {"", "aws"} and tail.startswith("i-") else None
