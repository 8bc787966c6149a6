"""Offline planning reads files, and says in one line what is wrong with one."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reconciler.adapters.files import CloudFiles, FileCluster
from reconciler.model.actions import DRAINING_TAINT
from reconciler.model.cluster import Taint
from reconciler.model.errors import InputError, NotFound, Refused
from reconciler.model.ids import FleetId, InstanceId, NodeName, PodKey, Region

HOME = Region("us-west-2")
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "api-1", "namespace": "web"},
    "spec": {"nodeName": "n1"},
}
FLEETS: dict[str, Any] = {
    "Fleets": [
        {
            "FleetId": "fleet-1",
            "TargetCapacitySpecification": {"TotalTargetCapacity": 2},
            "Tags": [
                {"Key": "fleet", "Value": "primary-small"},
                {"Key": "cluster", "Value": "analytics"},
            ],
        }
    ]
}


def write(folder: Path, name: str, content: Any) -> str:
    """A file with JSON or bytes."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return str(path)


def test_files_and_standard_input_make_one_cluster(tmp_path: Path) -> None:
    """Nodes and pods usually come from two calls of kubectl."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    paths = [write(tmp_path, "pods.json", {"kind": "List", "items": [POD]}), "-", "-"]
    cluster = FileCluster(paths, io.BytesIO(json.dumps(node).encode()))
    state = cluster.observe()
    assert ([pod.key.name for pod in state.pods], [node.name for node in state.nodes]) == (
        ["api-1"],
        ["n1"],
    )
    assert [key.name for key in cluster.counted_pods_on(NodeName("n1"))] == ["api-1"]
    assert not cluster.wait_for_change(60)
    cluster.close()


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("missing.json", None, "no such file"),
        ("empty.json", b"", "is empty"),
        ("binary.json", b"\x89PNG\xff", "UTF-8"),
        ("broken.json", b'{"kind": ', "is not JSON"),
        ("shape.json", b'{"hello": 1}', "holds no"),
        ("nul\0name", None, "cannot be read"),
    ],
)
@pytest.mark.parametrize("side", ["cluster", "cloud"])
def test_bad_file_is_named_in_one_line(
    tmp_path: Path, name: str, content: bytes | None, what: str, side: str
) -> None:
    """A traceback tells nobody which of ten files was wrong."""
    path = str(tmp_path / name) if content is None else write(tmp_path, name, content)

    def read() -> object:
        if side == "cluster":
            return FileCluster([path])
        return CloudFiles([path])

    with pytest.raises(InputError) as caught:
        read()
    assert what in str(caught.value)
    assert path.split("\0")[0] in str(caught.value)
    assert "\n" not in str(caught.value)


def test_directory_and_huge_file_are_refused(tmp_path: Path) -> None:
    """Reading a disk image into memory ends the program without a word."""
    with pytest.raises(InputError, match="is a directory"):
        FileCluster([str(tmp_path)])
    huge = tmp_path / "huge.json"
    with huge.open("wb") as stream:
        stream.truncate(2 * 1024**3 + 1)
    with pytest.raises(InputError, match="2 GiB"):
        FileCluster([str(huge)])


def test_cluster_of_files_cannot_be_changed(tmp_path: Path) -> None:
    """A plan from files that was carried out would act on nothing and report success."""
    cluster = FileCluster([write(tmp_path, "pods.json", POD)])
    node, pod = NodeName("n1"), PodKey(namespace="web", name="api-1")
    taint = Taint(key=DRAINING_TAINT, effect="NoSchedule")
    changes: tuple[Callable[[], object], ...] = (
        lambda: cluster.taint_node(node, taint),
        lambda: cluster.untaint_node(node, taint.key),
        lambda: cluster.evict_pod(pod, 5),
        lambda: cluster.delete_pod(pod, 5),
        lambda: cluster.delete_node(node, ""),
    )
    for change in changes:
        with pytest.raises(Refused):
            change()
    with pytest.raises(Refused):
        cluster.annotate_node(node, {"a": "b"})
    with pytest.raises(Refused):
        cluster.remember({"a": "b"})


def test_empty_answer_is_of_the_home_region(tmp_path: Path) -> None:
    """It says that the region has no fleet, which is not the same as no answer."""
    files = CloudFiles([write(tmp_path, "a.json", {})])
    empty = files.of_region(HOME, cluster="analytics").observe([HOME])
    assert empty.fleets == ()
    assert empty.regions == {HOME}


def test_files_say_which_regions_they_state(tmp_path: Path) -> None:
    """The home region of a config that names none is found by it."""
    open_ones = write(tmp_path, "fleets.json", FLEETS)
    away = write(tmp_path, "away.json", {**FLEETS, "Region": "us-east-1"})
    both, stated = CloudFiles([open_ones, away]), CloudFiles([away])
    assert both.stated_regions == stated.stated_regions == {Region("us-east-1")}
    assert both.leave_regions_open
    assert not stated.leave_regions_open


def test_cloud_of_files_answers_and_cannot_be_changed(tmp_path: Path) -> None:
    """The same port as the live one, so that planning sees no difference."""
    prices = {"InstanceType": "r5.xlarge", "SpotPrice": "0.1", "Timestamp": "2026-01-31T12:00:00Z"}
    paths = [
        write(tmp_path, "fleets.json", FLEETS),
        write(tmp_path, "away.json", {**FLEETS, "Region": "us-east-1"}),
        write(tmp_path, "prices.json", {"SpotPriceHistory": [prices]}),
    ]
    cloud = CloudFiles(paths).of_region(HOME, cluster="analytics")
    fleet_id = FleetId("fleet-1")
    assert [fleet.region for fleet in cloud.observe([HOME]).fleets] == ["us-east-1", "us-west-2"]
    assert cloud.fleet(HOME, fleet_id).target_capacity == 2
    assert cloud.instances(HOME, [InstanceId("i-1")]) == ()
    assert str(cloud.spot_prices()[HOME, "r5.xlarge"]) == "0.1"
    with pytest.raises(NotFound):
        cloud.fleet(Region("eu-west-1"), fleet_id)
    with pytest.raises(Refused):
        cloud.set_target_capacity(HOME, fleet_id, 3)
    with pytest.raises(Refused):
        cloud.terminate(HOME, fleet_id, [InstanceId("i-1")], lower_target=False)
