"""Generated mixes: what a small file makes, the same each time."""

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from reconciler.model.demand import (
    BudgetDemand,
    ControllerDemand,
    CronDemand,
    Demand,
    PodDemand,
)
from reconciler.model.errors import ConfigError, InputError
from reconciler.records.demand import encode_line
from reconciler.simulation.mixes import generated, read_mix

MIX = """
seed: 7
days: 2
node_selector: {sector: web}
deployments:
- {name: api, count: 2, cpu: 250m..1, memory: 1Gi, replicas: 2..10, noise: 0.1, weekend: 0.5,
   rollouts_per_day: 3, max_unavailable: 25%, spread: zones}
stateful_sets:
- {name: db, cpu: "2", memory: 8Gi, replicas: 3, max_unavailable: 1, spread: nodes}
daemon_sets:
- {name: agent, cpu: 50m, memory: 64Mi}
cron_jobs:
- {name: report, schedule: "0 3 * * *", pods: 4, cpu: 1, memory: 1Gi, duration: 10m..40m}
jobs:
- {name: build, namespace: ci, node_selector: {sector: ci}, per_hour: 30, night: 0, pods: 1..4,
   cpu: 500m..4, memory: 1Gi..8Gi, duration: 2m..30m}
"""


def demand(text: str = MIX) -> Demand:
    """What the file makes."""
    return generated(read_mix(text.encode(), "mix.yaml"), "mix.yaml")


def encoded(text: str = MIX) -> list[bytes]:
    """The same as lines."""
    return [encode_line(line) for line in demand(text).lines]


def of_kind(kind: type[Any], found: Demand) -> list[Any]:
    """The lines of one kind."""
    return [line for line in found.lines if isinstance(line, kind)]


def test_same_seed_makes_the_same_bytes_and_another_one_others() -> None:
    """A comparison of two configs must not compare two demands."""
    assert encoded() == encoded()
    assert encoded() != encoded(MIX.replace("seed: 7", "seed: 8"))


def test_replicas_of_stateful_sets_have_as_many_volumes_as_it_says() -> None:
    """Databases without disks move between zones, as none does."""
    text = MIX.replace("replicas: 3,", "replicas: 3, volumes: 2,")
    (made,) = [line for line in of_kind(ControllerDemand, demand(text)) if line.claim_templates]
    assert made.controller.name == "db-0"
    assert [claim_template.name for claim_template in made.claim_templates] == ["data-0", "data-1"]
    with pytest.raises(ConfigError, match="must be 16 or less, not 17"):
        demand(text.replace("volumes: 2", "volumes: 17"))


def test_mix_ends_with_its_last_day_though_jobs_run_on() -> None:
    """A report of a week had an eighth day, of the minutes of its last Jobs."""
    long = demand(MIX.replace("duration: 2m..30m", "duration: 10h..20h"))
    assert long.end - long.begin == timedelta(days=2)


def test_further_workload_changes_nothing_of_the_others() -> None:
    """What a new service costs is the difference."""
    more = MIX.replace("cron_jobs:", "- {name: logs, cpu: 50m, memory: 64Mi}\ncron_jobs:")
    assert set(encoded()) < set(encoded(more))


def test_replicas_follow_the_day_within_their_range() -> None:
    """Most at the peak, fewest at night, and rollouts between."""
    lines = [c for c in of_kind(ControllerDemand, demand()) if c.controller.name == "api-0"]
    levels = [line.replicas for line in lines if line.replicas is not None]
    assert min(levels) == 2
    assert max(levels) == 10
    at_peak = [c.replicas for c in lines if c.replicas is not None and 12 <= c.at.hour < 16]
    at_night = [c.replicas for c in lines if c.replicas is not None and 0 <= c.at.hour < 4]
    assert min(at_peak) > max(at_night)
    templates = [line.spec for line in lines if line.spec is not None]
    assert len(templates) > 1
    assert {template.requests["cpu"] for template in templates} == {templates[0].requests["cpu"]}


def test_every_kind_is_there_with_what_was_said_of_it() -> None:
    """Budgets, spread, schedules and selectors."""
    found = demand()
    kinds = Counter(line.controller.kind for line in of_kind(ControllerDemand, found))
    assert kinds.keys() == {"Deployment", "StatefulSet", "DaemonSet"}
    assert [(b.id, b.max_unavailable) for b in of_kind(BudgetDemand, found)] == [
        ("api-0", "25%"),
        ("api-1", "25%"),
        ("db-0", 1),
    ]
    (cron,) = of_kind(CronDemand, found)
    assert (cron.pods, cron.spec.node_selector) == (4, {"sector": "web"})
    assert 600 <= cron.ran_seconds <= 2400
    pods = of_kind(PodDemand, found)
    assert all(500 <= p.spec.requests["cpu"] <= 4000 for p in pods)
    assert {p.spec.node_selector["sector"] for p in pods} == {"ci"}
    hours = Counter(p.at.hour for p in pods)
    assert hours[14] + hours[13] > 5 * (hours[1] + hours[2])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (MIX.replace("count: 2", "counts: 2"), "counts"),
        (MIX.replace("replicas: 2..10", "replicas: 10..2"), "smaller to the larger"),
        (MIX.replace("250m..1", "250m..x"), "bad quantity"),
        (MIX.replace("count: 2", "count: 100000"), "1000"),
        (MIX.replace('"0 3 * * *"', '"often"'), "cron"),
        (MIX.replace('"0 3 * * *"', '"0 0 3 * * *"'), "it has 6 fields, not 5"),
        (MIX.replace("25%", "125%"), "'125%'"),
        (MIX.replace("25%", "-1"), "must be at least 0"),
        (f"{MIX}\nstart: 9999-12-31T12:00:00Z", "its year is 9999"),
        (f"{MIX}\nstart: 0001-01-01T00:00:00+14:00", "its year is 1,"),
        (
            "jobs:\n- &a {name: b, per_hour: 1, cpu: 1, memory: 1Gi, duration: 1m}\n- *a\n",
            "default/b is there already",
        ),
        (
            MIX.replace("name: db, cpu", "name: api, cpu"),
            "mix.yaml:9:4: config/range: default/api is there already",
        ),
        ("- 1", "mapping"),
    ],
)
def test_fault_is_reported_with_its_place(text: str, said: str) -> None:
    """All of them, as for a sector config."""
    with pytest.raises(ConfigError) as caught:
        demand(text)
    assert said in str(caught.value)
    assert "mix.yaml:" in str(caught.value)
    assert "reconciler validate" not in str(caught.value)


def test_mix_of_nothing_or_of_too_much_is_refused() -> None:
    """A file of a few lines can ask for any amount."""
    with pytest.raises(InputError, match="names no workload"):
        demand("seed: 1")
    with pytest.raises(InputError, match="more than 100 lines"):
        generated(read_mix(MIX.encode(), "mix.yaml"), "mix.yaml", lines_max=100)


def test_schedule_may_be_one_of_the_names_that_cron_jobs_take() -> None:
    """Lines of demand take them too, by the same rule."""
    (found,) = of_kind(CronDemand, demand(MIX.replace('"0 3 * * *"', '"@daily"')))
    assert found.schedule == "0 0 * * *"
