"""Which clouds are observed for a config."""

from collections.abc import Sequence

import pytest
from typing_extensions import override

from reconciler.adapters.memory import MemoryCloud, MemoryWorld
from reconciler.bootstrap.planning.providers import observed_clouds
from reconciler.model.errors import Forbidden
from reconciler.model.ids import Region
from reconciler.model.snapshot import CloudState
from tests.builders import HOME, make_fleet_settings, make_settings


class NoRights(MemoryCloud):
    """Auto Scaling without the rights to ask it."""

    @override
    def observe(self, regions: Sequence[Region]) -> CloudState:
        """Refuse."""
        raise Forbidden("autoscaling", "is not allowed")


def seen(*allow_destroy: str, provider: str = "ec2-fleet") -> list[CloudState]:
    """What each observed cloud shows of a config of one fleet."""
    world = MemoryWorld()
    clouds = {"ec2-fleet": MemoryCloud(world, "ec2-fleet"), "asg": NoRights(world, "asg")}
    settings = make_settings(
        make_fleet_settings(provider=provider), allow_destroy=frozenset(allow_destroy)
    )
    return [cloud.observe([HOME]) for cloud in observed_clouds(clouds, settings)]  # type: ignore[arg-type]


def test_group_that_the_config_lets_go_is_looked_for() -> None:
    """The last group of a config would never be drained: nothing would show its nodes."""
    assert len(seen()) == 1
    assert len(seen("primary-small")) == 1
    assert len(seen("primary-old")) == 2


def test_missing_rights_to_groups_do_not_blind_a_config_of_fleets() -> None:
    """A fleet is let go in a cluster that never had a group: its loop must go on."""
    _, groups = seen("primary-old")
    assert (groups.fleets, groups.regions, groups.silent) == ((), frozenset({HOME}), frozenset())
    (told,) = groups.ignored
    assert (told.kind, told.name) == ("Provider", "asg")
    assert "is not allowed" in told.detail


def test_missing_rights_to_groups_of_the_config_are_an_error() -> None:
    """Whoever scales groups must hear that the role may not read them."""
    with pytest.raises(Forbidden):
        seen(provider="asg")
