"""Sweeps: combinations, what is recommended, and that it is the same wherever they run."""

import os
import pickle
import signal
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from reconciler.bootstrap.simulation.simulating import SimulateRequest, settings_of
from reconciler.bootstrap.simulation.sweeping import SweepRequest, Task, play, results, sweep
from reconciler.model.cluster import Owner
from reconciler.model.demand import ControllerDemand
from reconciler.model.errors import ConfigError, ToolError, UsageError
from reconciler.records.demand import encode_line
from reconciler.simulation.simulation import Options
from reconciler.simulation.sweep import points, summary, with_point
from tests.builders import NOW, make_spec

CONFIG = """
cluster: sim
regions: [us-east-1]
default_sector: ci
sectors: {ci: {kind: cpu, fleets: [{size: small}]}}
"""
TRACE = "submit_s,duration,cpu,memory\n" + "\n".join(f"{n * 90},120,2,2048" for n in range(12))


@pytest.fixture
def files(tmp_path: Path) -> SimulateRequest:
    """A config and a trace, to be simulated for half an hour."""
    (tmp_path / "sectors.yaml").write_text(CONFIG)
    (tmp_path / "trace.csv").write_text(TRACE)
    return SimulateRequest(
        config=str(tmp_path / "sectors.yaml"),
        demand=str(tmp_path / "trace.csv"),
        options=Options(days=0.04),
    )


def silent(done: int, of: int, values: Mapping[str, str], run: Any) -> None:
    """Say nothing about a point."""


def test_points_are_the_product_of_all_values() -> None:
    """The last key changes fastest; the first point is what others are compared with."""
    found = points(["a.b=1m,5m", "c=true,false"])
    assert [tuple(each.values()) for each in found] == [
        ("1m", "true"), ("1m", "false"), ("5m", "true"), ("5m", "false"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "words",
    [
        ["a"], ["a="], ["a=1,,2"], ["a=1", "a=2"], ["=1"], ["sleep_interval=1m,5m"],
        ["a=\udcff"], ["a=1\nb: 2"],
    ],
)  # fmt: skip
def test_word_that_is_no_sweep_is_refused(words: list[str]) -> None:
    """A mistyped sweep would run one point for an hour."""
    with pytest.raises(UsageError):
        points(words)


def test_too_many_combinations_are_refused() -> None:
    """Ten keys of ten values are more than anybody wants."""
    with pytest.raises(UsageError, match="10,000 combinations"):
        points([f"k{n}=0,1,2,3,4,5,6,7,8,9" for n in range(4)])
    with pytest.raises(UsageError, match="1,000,000,000,000 combinations"):  # before any is made
        points([f"k{n}=0,1,2,3,4,5,6,7,8,9" for n in range(12)])


def test_values_stand_at_their_keys_and_the_config_is_left_alone() -> None:
    """Points must not see each other's values."""
    document = {"scale_in": {"idle_threshold": "10m", "settle": "5m"}}
    changed = with_point(document, {"scale_in.idle_threshold": "1m", "consolidation": "x"})
    assert changed == {
        "scale_in": {"idle_threshold": "1m", "settle": "5m"}, "consolidation": "x",
    }  # fmt: skip
    assert document["scale_in"]["idle_threshold"] == "10m"


def run(usd: float, p95: float, left: int = 0, deleted: int = 0) -> dict[str, Any]:
    """Figures as far as a sweep reads them."""
    waits = {f"p{n}_seconds": p95 for n in (50, 95, 99)}
    return {
        "cost": {"usd_per_day": usd, "above_lower_bound": 0.1},
        "waiting": {
            **waits,
            "without_a_node_at_the_end": left,
            "deleted_without_a_node": deleted,
        },
        "evictions": {},
    }


def test_recommendation_says_what_to_change_and_what_it_is_worth() -> None:
    """The one sentence that a person takes away."""
    found = summary(
        points(["scale_in.idle_threshold=10m,2m,0s"]),
        [run(100, 10), run(91, 14), run(90.9, 300)],
    )
    assert found["recommendation"] == (
        "scale_in.idle_threshold 2m instead of 10m: 9.0% cheaper, p95 waiting +4.0 s."
    )
    assert [row["on_front"] for row in found["rows"]] == [True, True, True]


def test_cheap_config_that_leaves_pods_without_a_node_is_not_recommended() -> None:
    """A config that serves no pod costs nothing, and is not the better one."""
    found = summary(points(["x=1,2"]), [run(100, 10), run(50, 10, left=30)])
    assert found["recommended"] == 1
    assert found["recommendation"] == (
        "Keep x 1: no other combination that leaves as few pods without a node is cheaper for "
        "what it makes pods wait."
    )


def test_recommendation_says_that_fewer_pods_are_left_without_a_node() -> None:
    """It read as if the sweep recommended what is more expensive and lets pods wait longer."""
    found = summary(points(["x=1,5"]), [run(20, 40, left=2, deleted=1), run(60, 55)])
    assert found["recommendation"] == (
        "x 5 instead of 1: 200.0% more expensive, p95 waiting +15.0 s, 3 fewer pods without a node."
    )


def test_config_whose_pods_are_deleted_while_they_wait_is_not_recommended() -> None:
    """Their owner ends most pods one day: nothing that serves none of them is the better one."""
    found = summary(points(["x=1,2"]), [run(100, 10), run(50, 10, deleted=30)])
    assert found["recommended"] == 1
    assert [row["deleted_without_a_node"] for row in found["rows"]] == [0, 30]


def test_point_that_is_no_config_ends_the_sweep_before_it_begins(files: SimulateRequest) -> None:
    """Not after an hour of the others."""
    with pytest.raises(ConfigError, match="idle_threshold"):
        sweep(
            SweepRequest(simulation=files, sweeps=("scale_in.idle_threshold=1m,soon",), workers=0),
            silent,
        )


def test_key_that_flag_or_variable_replaces_is_refused(
    files: SimulateRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All points were the same, and the recommendation was to keep a value that none had."""
    idle = SweepRequest(simulation=files, sweeps=("scale_in.idle_threshold=1m,5m",), workers=0)
    monkeypatch.setenv("RECONCILER_IDLE_THRESHOLD", "2m")
    with pytest.raises(UsageError, match="idle_threshold changes nothing while RECONCILER_IDLE"):
        sweep(idle, silent)
    elsewhere = replace(files, flags={"regions": "us-west-2"})
    regions = replace(idle, simulation=elsewhere, sweeps=("regions=us-east-1,us-west-2",))
    with pytest.raises(UsageError, match="regions changes nothing while --regions"):
        sweep(regions, silent)


def test_config_of_a_sweep_is_read_as_everywhere(files: SimulateRequest) -> None:
    """YAML 1.1 makes 8 of `010`, which is refused elsewhere, and 480 seconds of `8:00`."""
    Path(files.config).write_text(f"{CONFIG}critical_error_threshold: 010\n")
    request = SweepRequest(simulation=files, sweeps=("consolidation=true,false",), workers=0)
    with pytest.raises(ConfigError, match="'010' is octal"):
        sweep(request, silent)


def test_policy_file_of_the_descheduler_is_read_as_in_a_plain_run(files: SimulateRequest) -> None:
    """A sweep played another config than the one that is written."""
    settings = "{enabled: true, interval: 1m, policy_file: policy.yaml}"
    config = CONFIG.replace("size: small", "size: small, spot: false, min_capacity: 3")
    Path(files.config).write_text(f"{config}descheduler: {settings}\n")
    request = SweepRequest(simulation=files, sweeps=("descheduler.interval=1m,2m",), workers=0)
    policy = Path(files.config).with_name("policy.yaml")
    policy.write_text("garbage: [")
    with pytest.raises(ConfigError, match=r"policy\.yaml:2:"):
        sweep(request, silent)
    policy.write_text("""
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: p
  pluginConfig: [{name: PodLifeTime, args: {maxPodLifeTimeSeconds: 600}}]
  plugins: {deschedule: {enabled: [PodLifeTime]}}
""")
    web = ControllerDemand(
        at=NOW, controller=Owner(kind="Deployment", name="web"), replicas=2,
        spec=make_spec("1", "1Gi"),
    )  # fmt: skip
    demand = Path(files.demand).with_name("web.jsonl")
    demand.write_bytes(encode_line(web))
    request = replace(request, simulation=replace(files, demand=str(demand)))
    found, _ = sweep(request, silent)
    assert all(row["evictions"] for row in found["sweep"]["rows"])


def test_value_that_is_no_yaml_is_a_fault_of_the_sweep(files: SimulateRequest) -> None:
    """It was a traceback."""
    request = SweepRequest(simulation=files, sweeps=("consolidation=[",), workers=0)
    with pytest.raises(ConfigError, match="--sweep consolidation"):
        sweep(request, silent)


def test_scheduler_that_does_not_answer_is_reported(files: SimulateRequest) -> None:
    """An address with a mistake."""
    with pytest.raises((ToolError, UsageError), match="tcp"):
        sweep(
            SweepRequest(simulation=files, sweeps=("consolidation=true,false",), dask="tcp:/x"),
            silent,
        )


class Sent:
    """A Dask client without workers, which keeps what it is to send."""

    def __init__(self) -> None:
        self.scheduler = SimpleNamespace(address="tcp://h:8786")
        self.sent: list[object] = []

    def submit(self, call: Callable[..., object], *given: object, **_options: object) -> object:
        """Return a future's name."""
        self.sent += given
        return f"{call.__name__}-{len(self.sent)}"

    def wait_for_workers(self, _count: int, timeout: float) -> None:
        """No worker comes."""
        raise TimeoutError(timeout)


def test_demand_is_sent_once_however_many_points_there_are(files: SimulateRequest) -> None:
    """A scheduler held a demand of 100 MiB a thousand times, and was killed for its memory."""
    pytest.importorskip("distributed", reason="the extra `simulate`")
    demand, client = TRACE.encode(), Sent()
    task = Task(name="p", settings=settings_of(files.config, {}), demand_name="trace.csv")
    with pytest.raises(ToolError, match="no worker joined"):
        list(results(client, [task] * 5, demand))
    assert sum(pickle.dumps(each).count(demand) for each in client.sent) == 1


@pytest.mark.timeout(240)
@pytest.mark.filterwarnings("ignore")
def test_bytes_are_the_same_on_a_cluster_of_which_a_worker_is_killed(
    files: SimulateRequest,
) -> None:
    """A sweep of hours on machines that come and go must not depend on which of them did what."""
    distributed = pytest.importorskip("distributed", reason="the extra `simulate`")
    tasks = [
        Task(name=f"p{n}", settings=settings_of(files.config, {}), demand_name="trace.csv",
             options=Options(days=0.04, sleep_seconds=20.0 + n))
        for n in range(6)
    ]  # fmt: skip
    alone = [play(task, TRACE.encode()) for task in tasks]
    with (
        distributed.LocalCluster(n_workers=4, threads_per_worker=1, host="127.0.0.1",
                                 dashboard_address=None, silence_logs=50) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):  # fmt: skip
        pids = client.run(os.getpid)
        found: dict[int, Any] = {}
        for number, figures in results(client, tasks, TRACE.encode()):
            if not found:
                os.kill(min(pids.values()), signal.SIGKILL)
            found[number] = figures
    again = [orjson.dumps(found[n], option=orjson.OPT_SORT_KEYS) for n in range(len(tasks))]
    assert again == alone
