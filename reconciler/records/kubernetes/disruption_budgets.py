"""Decodes PodDisruptionBudgets."""

from typing import Annotated

from msgspec import Meta, Raw
from msgspec.json import Decoder

from reconciler.model.cluster import PodDisruptionBudget
from reconciler.model.selectors import LabelSelector
from reconciler.records.kubernetes.fields import (
    LabelSelectorWire,
    MetadataWire,
    Wire,
    label_selector_of,
    required_name,
)
from reconciler.records.kubernetes.limits import label_selector_size, selector_beyond

Count = Annotated[int, Meta(ge=0, lt=2**31)]


class _BudgetSpecWire(Wire):
    selector: LabelSelectorWire | None = None
    unhealthy_pod_eviction_policy: str | None = None


class _BudgetStatusWire(Wire):
    disruptions_allowed: Count | None = None
    current_healthy: Count | None = None
    desired_healthy: Count | None = None
    observed_generation: Count | None = None


class _BudgetMetadataWire(MetadataWire):
    generation: int | None = None


class _BudgetWire(Wire):
    metadata: _BudgetMetadataWire
    api_version: str | None = None
    spec: _BudgetSpecWire | None = None
    status: _BudgetStatusWire | None = None


_BUDGET = Decoder(_BudgetWire)


def decode_budget(raw: bytes | Raw) -> PodDisruptionBudget:
    """Decode one budget; raise ValueError when it cannot be read.

    A status that the controller has not written yet, or has not written again since the budget
    changed, allows nothing: the Eviction API refuses until it has.
    """
    wire = _BUDGET.decode(raw)
    spec, status = wire.spec or _BudgetSpecWire(), wire.status or _BudgetStatusWire()
    generation, observed = wire.metadata.generation, status.observed_generation
    stale = generation is not None and observed is not None and observed < generation
    return PodDisruptionBudget(
        namespace=wire.metadata.namespace or "default",
        name=required_name(wire.metadata.name),
        selector=_selector(spec.selector, wire.api_version),
        disruptions_allowed=0 if stale else status.disruptions_allowed or 0,
        unhealthy_pod_eviction_policy=spec.unhealthy_pod_eviction_policy or "IfHealthyBudget",
        current_healthy=status.current_healthy or 0,
        desired_healthy=status.desired_healthy or 0,
    )


def _selector(wire: LabelSelectorWire | None, api_version: str | None) -> LabelSelector | None:
    """Return the selector: an empty one matches every pod in policy/v1, none in v1beta1."""
    too_complex = selector_beyond(label_selector_size(wire), "selector")
    if too_complex:
        raise ValueError(too_complex)
    selector = label_selector_of(wire)
    if api_version == "policy/v1beta1" and selector is not None and not selector.keys():
        return None
    return selector
