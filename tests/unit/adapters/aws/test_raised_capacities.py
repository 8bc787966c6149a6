"""A desired capacity that we raised is not lowered because of an older answer."""

from typing import Any, cast

import pytest

from reconciler.adapters.aws.replaced_targets import STALE_SECONDS
from reconciler.model.errors import Refused
from reconciler.model.ids import FleetId
from tests.unit.adapters.aws.groups_account import HOME, Watched

GROUP = FleetId("group-000")


@pytest.fixture
def watched() -> Watched:
    """Groups with ten instances each; answers do not show what is set."""
    found = Watched()
    account = cast("Any", found.account)
    account.attempts = 1
    account.autoscaling = lambda _region, changing=False: account
    account.sent = []
    account.set_desired_capacity = lambda **a: account.sent.append(a["DesiredCapacity"])
    return found


def test_raise_below_our_last_one_is_refused_while_answers_are_old(watched: Watched) -> None:
    """From 18 to 12 the group would end six instances of its own choice."""
    watched.cloud.set_target_capacity(HOME, GROUP, 18)
    watched.seconds += STALE_SECONDS - 1
    with pytest.raises(Refused, match="not lowered from 18 to 12"):
        watched.cloud.set_target_capacity(HOME, GROUP, 12)
    watched.cloud.set_target_capacity(HOME, GROUP, 20)
    assert cast("Any", watched.account).sent == [18, 20]


def test_what_somebody_lowered_counts_after_a_minute(watched: Watched) -> None:
    """Otherwise nothing could be raised there again."""
    watched.cloud.set_target_capacity(HOME, GROUP, 18)
    watched.seconds += STALE_SECONDS + 1
    watched.cloud.set_target_capacity(HOME, GROUP, 12)
    assert cast("Any", watched.account).sent == [18, 12]
