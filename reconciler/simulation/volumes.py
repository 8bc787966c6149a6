"""The claims of pods of demand: what a pod or a controller's template names, as pods have it."""

from collections.abc import Sequence

from reconciler.adapters.memory import ClaimShape, MemoryWorld
from reconciler.model.demand import ClaimDemand, ClaimTemplate, PodVolumes


def change_claim(world: MemoryWorld, claim: ClaimDemand) -> None:
    """Apply a line: a claim exists, or is deleted."""
    if claim.deleted:
        world.remove_claim(claim.namespace, claim.id)
        return
    world.add_claim(
        ClaimShape(
            namespace=claim.namespace,
            name=claim.id,
            zone=claim.zone,
            storage_class=claim.storage_class,
            driver=claim.driver,
            immediate=claim.immediate,
            access_modes=claim.access_modes,
        )
    )


def claims_of(
    world: MemoryWorld,
    namespace: str,
    pod_name: str,
    volumes: PodVolumes,
    templates: Sequence[ClaimTemplate] = (),
) -> tuple[str, ...]:
    """Return the claims of a pod by name, after creating those that come with the pod.

    Args:
        world: The pod's world.
        namespace: The pod's namespace.
        pod_name: The pod's name.
        volumes: What its template names.
        templates: The volumeClaimTemplates of its StatefulSet. What a claim of that name holds is
            kept from one pod to the next.
    """
    if not (volumes.claims or volumes.ephemeral or templates):
        return ()
    of_set = {f"{template.name}-{pod_name}": template for template in templates}
    for name, claim_template in of_set.items():
        world.add_claim(ClaimShape(
            namespace=namespace, name=name, storage_class=claim_template.storage_class,
            access_modes=claim_template.access_modes,
        ))  # fmt: skip
    own = [f"{pod_name}-{each}" for each in volumes.ephemeral]
    for name in own:
        world.add_claim(ClaimShape(namespace=namespace, name=name, of_pod=True))
    return tuple(dict.fromkeys((*of_set, *volumes.claims, *own)))
