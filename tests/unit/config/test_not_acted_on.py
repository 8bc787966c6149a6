"""What a config asks for and this version does not do is refused, and only that."""

import pytest

from reconciler.config.check import check_reading
from reconciler.config.faults import NOT_ACTED_ON
from reconciler.config.loader import Purpose, parse_config, read_config
from reconciler.model.errors import ConfigError
from tests.unit.config.documents import COMPLETE, config_of, with_fleets

GROUP = with_fleets("{size: small, provider: asg, auto_scaling_group: workers}")
DEFAULTS = """\
spot_rescheduler: {enabled: false, housekeeping_interval: 10s, node_drain_delay: 10m,
                   on_demand_node_label: lifecycle=OnDemand, delete_non_replicated_pods: false}
descheduler: {enabled: false, policies: {}}
interruption: {queue_url: "", rebalance: drain}
rolling_update: {enabled: false, max_batch: 1, pause: 2m, canary_time: 10m}
spot_return: {enabled: false, stable_for: 30m}
disruption_budgets: [{nodes: 10%}]
headroom: []
maintenance_windows: []
"""


def told(text: str, *, strict: bool = False) -> list[tuple[str, str, str]]:
    """Code, severity and path of everything that `validate` says of a text."""
    return [(p.code, p.severity, p.path) for p in check_reading(read_config(text), strict=strict)]


def refused_by_run(text: str) -> list[tuple[str, str]]:
    """Code and path of everything that `run` refuses in a text."""
    try:
        parse_config(text, purpose=Purpose.RUN)
    except ConfigError as error:
        return [(p.code, p.path) for p in error.problems]
    return []


@pytest.mark.parametrize("text", [COMPLETE, DEFAULTS + with_fleets("{size: small}")])
def test_defaults_and_what_is_off_ask_for_nothing(text: str) -> None:
    """The example of the documentation states them all."""
    assert (told(text), refused_by_run(text)) == ([], [])


def test_planning_goes_on_with_such_a_config() -> None:
    """Offline planning does nothing live; Auto Scaling groups are planned there as they were."""
    assert config_of(GROUP).sectors is not None


def test_auto_scaling_group_is_refused_by_run_and_a_warning_of_validate() -> None:
    """Offline planning serves groups, so their users' pipelines must not stop."""
    path = "sectors.primary.fleets[0].provider"
    assert told(GROUP) == [(NOT_ACTED_ON, "warning", path)]
    assert refused_by_run(GROUP) == [(NOT_ACTED_ON, path)]


def test_it_comes_together_with_the_other_faults() -> None:
    """All faults in one go, also where one of them hides the typed config."""
    codes = {code for code, _, _ in told(GROUP + "bogus: 1\n")}
    assert codes == {NOT_ACTED_ON, "config/unknown-key"}
