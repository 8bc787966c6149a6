"""A service on a fleet that gets a new launch template version."""

from tests.e2e.scene import FleetShape, Scene, pod_spec, template
from tests.full_proofs import rounds

NODES = rounds(8, 40)
BATCH = 4
INIT_SECONDS = 8
CONFIG = f"""\
scale_in: {{idle_threshold: 600s, settle_time: 1s}}
disruption_budgets: [{{nodes: {BATCH}}}]
instance_init_time: {INIT_SECONDS}s
rolling_update: {{enabled: true, max_batch: {BATCH}, pause: 1s, canary_time: 3s}}"""
LABELS = {"app": "web"}


class InService:
    """Watches how many nodes take pods, and how many pods run."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self.fewest_nodes = NODES

    def look(self) -> set[str]:
        """The instances of all nodes; the fewest nodes in service are noted."""
        self.fewest_nodes = min(self.fewest_nodes, len(self._scene.ready_nodes()))
        return instances(self._scene)


def instances(scene: Scene) -> set[str]:
    """The instances behind the nodes, whose names are given again with the addresses."""
    return {str(node.instance_id) for node in scene.nodes()}


def opened(scene: Scene) -> set[str]:
    """A fleet whose nodes run a service with a budget; its instances."""
    scene.open(FleetShape(target=NODES, lowest=NODES, most=2 * NODES), config=CONFIG)
    replicas = 2 * NODES
    budget = {"maxUnavailable": BATCH, "selector": {"matchLabels": LABELS}}
    scene.create("PodDisruptionBudget", "web", budget)
    web = {"replicas": replicas, **template(LABELS, pod_spec("1300m", "64Mi"))}
    scene.create("Deployment", "web", web)
    scene.until(lambda _: len(scene.running()) == replicas, f"{replicas} pods run", 300)
    return instances(scene)
