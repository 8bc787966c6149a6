"""What a changed config would have meant for a recorded demand."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from reconciler.bootstrap.pipeline.replaying import ConfigOfCommit, replay
from reconciler.config.catalogue import Catalogue, load_catalogue, render_catalogue
from reconciler.gitops.terraform_plan.replay import Replay, replay_json, replay_lines
from reconciler.model.cluster import Owner
from reconciler.model.demand import DemandLine, FaultDemand, PodDemand, PodEnd
from reconciler.records.demand import encode_line
from tests.builders import NOW, make_spec

CONFIG = """
cluster: sim
regions: [us-east-1]
default_sector: ci
scale_in: {idle_threshold: 10m}
sectors: {ci: {kind: cpu, fleets: [{size: large, spot: false}]}}
"""


@pytest.fixture
def demand(tmp_path: Path) -> Path:
    """Four hours of pods that run a minute each, of which every third asks for 12 CPU."""
    lines = []
    for number in range(60):
        large = number % 3 == 0
        lines.append(
            PodDemand(
                at=NOW + timedelta(minutes=4 * number),
                id=f"pod-{number}",
                spec=make_spec("12" if large else "1", "1Gi"),
                namespace="team",
                controller=Owner(kind="Job", name="train" if large else "build"),
                ran_seconds=60.0,
            )
        )
    file = tmp_path / "demand.jsonl"
    file.write_bytes(b"".join(map(encode_line, lines)))
    return file


def of_commit(name: str, content: str, policies: str | None) -> ConfigOfCommit:
    """A config with or without a policy file beside it."""
    files = {} if policies is None else {"policy.yaml": policies.encode()}
    return ConfigOfCommit(name=name, content=content.encode(), beside=files.get)


def replayed(
    demand: Path | str,
    after: str,
    before: str | None = CONFIG,
    policies: tuple[str | None, str | None] = (None, None),
) -> Replay:
    """The change from one config to the other, each with its policy file: before and after."""
    earlier = None
    if before is not None:
        earlier = of_commit("sectors.yaml before", before, policies[0])
    config = of_commit("sectors.yaml", after, policies[1])
    return replay(str(demand), config, earlier, cluster_name=None)


def test_type_that_is_too_small_for_a_third_of_the_pods_is_reported(demand: Path) -> None:
    """A merge would leave every third job without a node, and the plan looks harmless."""
    found = replayed(demand, CONFIG.replace("size: large", "size: small"))
    assert found.before is not None
    assert found.after is not None
    assert found.before["waiting"]["without_a_node_at_the_end"] == 0
    assert found.after["waiting"]["without_a_node_at_the_end"] == 20
    text = "\n".join(replay_lines(found))
    assert "| pods without a node at the end | 0 | 20 | +20 |" in text
    assert "`Job team/train`" in text
    assert "**20 pods find no node**" in text
    assert "`Job team/build`" not in text


def test_workload_that_waits_as_before_is_not_reported_to_wait_longer(demand: Path) -> None:
    """It was no longer among the worst twenty before, as others waited more than it did."""
    named = [f"new-{number:02}" for number in range(20) for _ in range(2)]
    lines = [
        PodDemand(at=NOW, id=f"{name}-{n}", namespace="team",
                  until=NOW + timedelta(minutes=5),
                  spec=make_spec("64" if name == "poor" else "12"),
                  controller=Owner(kind="ReplicaSet", name=name))
        for n, name in enumerate([*named, "poor"])
    ]  # fmt: skip
    demand.write_bytes(b"".join(map(encode_line, lines)))
    found = replayed(demand, CONFIG, CONFIG.replace("size: large", "size: small"))
    assert "waits longer" not in "\n".join(replay_lines(found))
    alone = "\n".join(replay_lines(replace(found, before=None)))
    assert "`ReplicaSet team/poor`: **1 pod finds no node**" in alone
    assert "Who would wait:" in alone, "there is nothing that it would be longer than"
    assert found.before is not None
    assert len(found.before["waiting"]["workloads"]) == 21
    assert len(replay_json(found)["before"]["waiting"]["workloads"]) == 20


def crowded(number: int, until: float | None, ran: float | None) -> list[DemandLine]:
    """So many pods of one Job at the same time, each with a node to itself, in three hours."""
    pods = [
        PodDemand(at=NOW, id=f"x-{n}", spec=make_spec("12"), namespace="team", ran_seconds=ran,
                  until=None if until is None else NOW + timedelta(seconds=until),
                  controller=Owner(kind="Job", name="train"))
        for n in range(number)
    ]  # fmt: skip
    return [*pods, PodEnd(at=NOW + timedelta(hours=3), id="end-of-recording")]


LIMITED = CONFIG.replace("size: large", "size: large, max_capacity: 1")


def test_as_many_pods_that_wait_for_longer_are_reported(demand: Path) -> None:
    """All waited for more than two minutes before: what waits for an hour now was not named."""
    slow = FaultDemand(at=NOW, fault="slow-launch", seconds=300)
    lines = [slow, *crowded(4, None, 1200)]
    demand.write_bytes(b"".join(map(encode_line, lines)))
    (line,) = [
        replay_line
        for replay_line in replay_lines(replayed(demand, LIMITED))
        if replay_line.startswith("- `Job")
    ]
    assert "`Job team/train`: 4 pods wait longer than two minutes (the longest waits" in line
    assert ", before 3" in line
    assert "Who would wait" not in "\n".join(replay_lines(replayed(demand, CONFIG)))


def test_pods_that_are_deleted_without_a_node_are_reported_however_soon(demand: Path) -> None:
    """Runners whose owner gives up after less than two minutes never ran, and nobody was named."""
    demand.write_bytes(b"".join(map(encode_line, crowded(5, 110, None))))
    text = "\n".join(replay_lines(replayed(demand, LIMITED.replace("city: 1", "city: 0"))))
    assert "| pods deleted without a node | 0 | 5 | +5 |" in text
    assert "`Job team/train`: **5 pods find no node** (the longest waits 110 s)" in text


@pytest.mark.parametrize(
    ("price", "shown"),
    [("0.1003", "+0.3%"), ("0.0997", "-0.3%"), ("0.10001", "about the same"), ("0.11", "+10%")],
)
def test_small_change_is_reported_with_its_size(demand: Path, price: str, shown: str) -> None:
    """A hundred dollars of a large cluster were "-0%"."""
    found = replayed(demand, CONFIG)
    assert found.after is not None
    cost = {**found.after["cost"], "usd_per_day": 1000.0}
    costly = {**found.after["cost"], "usd_per_day": 10_000 * float(price)}
    changed = replace(
        found, before={**found.after, "cost": cost}, after={**found.after, "cost": costly}
    )
    (row,) = [line for line in replay_lines(changed) if "USD per day" in line]
    assert row.endswith(f"| {shown} |")


def test_idle_threshold_of_zero_is_reported_by_what_waits_longer(demand: Path) -> None:
    """Nodes go between two pods: each of them waits for a launch."""
    found = replayed(demand, CONFIG.replace("idle_threshold: 10m", "idle_threshold: 0s"))
    assert found.before is not None
    assert found.after is not None
    assert found.after["nodes"]["launches"] > 3 * found.before["nodes"]["launches"]
    assert found.after["waiting"]["p95_seconds"] > found.before["waiting"]["p95_seconds"]
    (row,) = [line for line in replay_lines(found) if "node, p95" in line]
    assert "| 0 s |" in row
    assert "| +" in row


def test_config_without_one_before_is_reported_alone(demand: Path) -> None:
    """The first config of a cluster has nothing to be compared with."""
    text = "\n".join(replay_lines(replayed(demand, CONFIG, None)))
    assert "| | with this config |" in text
    assert "before" not in text


@pytest.mark.parametrize(
    ("after", "before", "said"),
    [
        (CONFIG, "sectors: 3", "sectors.yaml before"),
        ("cluster: x\nregions: [us-east-1]\n", CONFIG, "names no fleet"),
    ],
)
def test_what_cannot_be_played_is_reported_and_stops_nothing(
    after: str, before: str, said: str, demand: Path
) -> None:
    """A recording that is broken must not stand in the way of a fix."""
    found = replayed(demand, after, before)
    assert said in found.problem
    assert "Not simulated" in "\n".join(replay_lines(found))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("demand.csv", b"submit_s,duration\r1,2\r", "demand.csv:1: it has a carriage return"),
        (
            "demand.jsonl",
            b'{"t":"2026-03-01T12:00:00Z","kind":"pod","id":"a","spec":' + b"[" * 9000,
            "demand.jsonl:1:",
        ),
        ("demand.jsonl", b"", "demand.jsonl: it is empty"),
        ("bad\udcff.yaml", b"days: x", ".yaml:1:1: config/type"),
    ],
)
def test_demand_that_cannot_be_read_is_reported_with_its_place(
    name: str, content: bytes, said: str, tmp_path: Path
) -> None:
    """The plan goes on, and its report can be written."""
    (tmp_path / name).write_bytes(content)
    found = replayed(tmp_path / name, CONFIG)
    assert said in found.problem
    assert found.after is None
    "\n".join(replay_lines(found)).encode()


def test_too_little_memory_is_reported_and_stops_nothing(
    demand: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan of a pull request ended without a report."""

    def full(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("reconciler.bootstrap.pipeline.replaying.Simulation", full)
    found = replayed(demand, CONFIG)
    assert "there is not enough memory" in found.problem
    assert found.after is None


def test_policy_file_of_each_commit_is_replayed(demand: Path) -> None:
    """A change of the policy file alone changes what is evicted."""
    lines = [
        PodDemand(at=NOW, id=f"web-{n}", spec=make_spec("1", "1Gi"), namespace="team",
                  controller=Owner(kind="ReplicaSet", name="web"))
        for n in range(2)
    ]  # fmt: skip
    demand.write_bytes(demand.read_bytes() + b"".join(map(encode_line, lines)))
    fleets = CONFIG.replace("spot: false", "spot: false, min_capacity: 3")
    config = f"{fleets}descheduler: {{enabled: true, interval: 1m, policy_file: policy.yaml}}\n"
    policy = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: p
  pluginConfig: [{name: PodLifeTime, args: {maxPodLifeTimeSeconds: %d}}]
  plugins: {deschedule: {enabled: [PodLifeTime]}}
"""
    found = replayed(demand, config, config, (policy % 864000, policy % 3600))
    assert found.problem == ""
    assert found.before is not None
    assert found.after is not None
    assert sum(found.before["evictions"].values()) == 0
    assert sum(found.after["evictions"].values()) > 0
    broken = replayed(demand, config, config, (policy % 3600, "garbage: ["))
    assert "policy.yaml:2:" in broken.problem
    absent = replayed(demand, config, config)
    assert "policy.yaml" in absent.problem
    outside = replayed(demand, config.replace("policy.yaml", "../policy.yaml"))
    assert "is not in the folder of the config" in outside.problem


def test_recording_that_is_not_there_is_reported() -> None:
    """The same."""
    found = replayed("absent.jsonl", CONFIG)
    assert "absent.jsonl" in found.problem
    assert replay_json(found) == {
        "demand": "absent.jsonl",
        "before": None,
        "after": None,
        "problem": found.problem,
    }


def test_names_in_a_recording_cannot_break_the_comment(demand: Path) -> None:
    """A tenant names a Job so that the comment of a pull request says something else."""
    text = demand.read_text().replace("train", "x`|<b>[y](http://z)")
    demand.write_text(text)
    found = replayed(demand, CONFIG.replace("size: large", "size: small"))
    (line,) = [replay_line for replay_line in replay_lines(found) if "find no node" in replay_line]
    assert line.count("http://z") == 1
    assert line.count("`") == 2


def test_each_commit_is_played_with_the_catalogue_beside_its_config(demand: Path) -> None:
    """A change of prices would show no change of cost, and a path of the config break the rest."""
    own = load_catalogue()
    doubled = replace(
        own,
        types={
            name: replace(
                instance_type,
                on_demand_usd_per_hour=2 * (instance_type.on_demand_usd_per_hour or Decimal(1)),
            )
            for name, instance_type in own.items()
        },
    )
    config = (CONFIG + "catalogue: prices/catalogue.json\n").encode()

    def of(catalogue: Catalogue) -> ConfigOfCommit:
        files = {"prices/catalogue.json": render_catalogue(catalogue).encode()}
        return ConfigOfCommit(name="sectors.yaml", content=config, beside=files.get)

    found = replay(str(demand), of(doubled), of(own), cluster_name=None)
    assert not found.problem
    assert found.before is not None
    assert found.after is not None
    assert found.after["cost"]["usd"] == pytest.approx(2 * found.before["cost"]["usd"], abs=0.01)
