"""What has to be kept free as headroom, and on which rows it may be placed."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from reconciler.model.cluster import PodSpec
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.headroom.pieces import HeadroomPieces, headroom_pieces
from reconciler.planner.placement.arrays import BoolArray
from reconciler.planner.reservations import Reservation


def pieces_asked_for(
    builder: PlanBuilder, reservations: Iterable[Reservation]
) -> tuple[HeadroomPieces, ...]:
    """Return the headroom of the config that a node could hold, as `headroom_asked_for`."""
    return tuple(each for each in headroom_asked_for(builder, reservations) if each.has_size)


def headroom_asked_for(
    builder: PlanBuilder, reservations: Iterable[Reservation]
) -> tuple[HeadroomPieces, ...]:
    """Return all headroom of the config, given the places that pods get in the plan."""
    view = builder.view
    return headroom_pieces(
        view.settings, view.inventory, view.offers, view.running, _placed(builder, reservations)
    )


def largest_first(pieces: Iterable[HeadroomPieces]) -> Sequence[HeadroomPieces]:
    """Return items in the order in which they are placed: small pieces fit next to large ones.

    In the reverse order a small piece may take the only node that holds a large one.
    """
    return sorted(pieces, key=_size, reverse=True)


def _size(pieces: HeadroomPieces) -> tuple[int, int]:
    requests = pieces.pod.spec.requests
    return requests.get("cpu", 0), requests.get("memory", 0)


def _placed(
    builder: PlanBuilder, reservations: Iterable[Reservation]
) -> Iterator[tuple[str, PodSpec, int]]:
    """Return sector, spec and number of the pods without a node that get a place in this plan.

    Pods that an interrupted node will lose still run, and are counted there.
    """
    view = builder.view
    for reservation in reservations:
        for row, pods in reservation.by_row():
            planned = builder.planned_nodes.get(row)
            if planned is None:
                key = view.inventory.fleet_of_node.get(builder.row_name(row))
            else:
                key = planned.key
            if key is not None:
                new = sum(pod.key not in view.displaced for pod in pods)
                yield view.statuses[key].settings.sector, reservation.waiting.pod_class.spec, new


def may_hold_headroom(builder: PlanBuilder) -> BoolArray:
    """Return the rows on which a piece may be placed: new nodes, and those of our fleets that stay.

    A node that is to be replaced could not leave while a piece is on it.
    """
    view = builder.view
    staying = np.ones(builder.sim.rows, dtype=np.bool_)
    for name, row in view.row_of.items():
        key = view.inventory.fleet_of_node.get(name)
        ours = key is not None and not view.statuses[key].settings.departing
        staying[row] = ours and name not in view.inventory.outdated
    return staying
