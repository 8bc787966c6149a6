"""A pod's size is what kube-scheduler takes it for."""

from typing import Any

import pytest

from tests.unit.records.kubernetes.kube import container, decode, decode_pod, pod_json

GIB = 1024**3


def sidecar(**resources: Any) -> dict[str, Any]:
    """A restartable init container."""
    return {**container(**resources), "restartPolicy": "Always"}


def test_containers_are_summed_and_the_pod_takes_a_slot() -> None:
    """Two containers counted once would overfill every node."""
    pod = decode_pod(containers=[container(cpu="500m", memory="1Gi"), container(cpu="1.5")])
    assert pod.spec.requests == {"cpu": 2000, "memory": GIB, "pods": 1}


def test_init_container_larger_than_the_rest_decides() -> None:
    """A pod with a big init step would be bound nowhere on a node sized for its main step."""
    pod = decode_pod(
        containers=[container(cpu="1")], initContainers=[container(cpu="3"), container(cpu="2")]
    )
    assert pod.spec.requests["cpu"] == 3000


def test_sidecar_adds_to_containers_and_to_later_init_containers_only() -> None:
    """A sidecar runs beside what starts after it, not beside what ran before it."""
    pod = decode_pod(
        containers=[container(cpu="1")],
        initContainers=[container(cpu="5"), sidecar(cpu="2"), container(cpu="4")],
    )
    assert pod.spec.requests["cpu"] == 6000
    pod = decode_pod(containers=[container(cpu="1")], initContainers=[sidecar(cpu="2")])
    assert pod.spec.requests["cpu"] == 3000


def test_overhead_is_added_to_the_largest_moment() -> None:
    """A sandboxed runtime's overhead is paid while starting as well."""
    pod = decode_pod(initContainers=[container(cpu="3")], overhead={"cpu": "250m"})
    assert pod.spec.requests["cpu"] == 3250


def test_pod_level_resources_win_for_cpu_and_memory_only() -> None:
    """Pod-level requests replace the containers' sum, but not their GPUs."""
    pod = decode_pod(
        containers=[container(**{"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"})],
        resources={"requests": {"cpu": "4"}, "limits": {"memory": "9Gi", "hugepages-2Mi": "4Mi"}},
    )
    assert pod.spec.requests == {
        "cpu": 4000,
        "memory": GIB,
        "nvidia.com/gpu": 1,
        "hugepages-2Mi": 4 * 1024**2,
        "pods": 1,
    }


def test_limit_stands_in_for_a_missing_request() -> None:
    """A file that never went through the API server has no defaulted requests."""
    resources = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}
    pod = decode_pod(containers=[{"resources": resources}])
    assert pod.spec.requests == {"cpu": 1000, "memory": GIB, "pods": 1}


def test_zero_requests_are_as_good_as_none() -> None:
    """Specs that differ only in zeros would split one class of pods into two."""
    pod = decode_pod(containers=[container(cpu="0", **{"nvidia.com/gpu": 0})])
    assert pod.spec.requests == {"pods": 1}


@pytest.mark.parametrize(
    "quantity",
    ["NaN", "-1", "", "1 Gi", "1e999", "9" * 30, -1, 1e300, True, None, [], {}, float("nan")],
)
def test_quantity_that_is_none_makes_the_pod_unreadable(quantity: Any) -> None:
    """A nonsense quantity must neither end the cycle nor count as nothing."""
    state = decode(pod_json(containers=[container(cpu=quantity)], nodeName="n"), pod_json("ok"))
    assert [(pod.key.name, pod.unreadable) for pod in state.pods] == [
        ("ok", False),
        ("web-1", True),
    ]
    assert [(each.code, each.kind, each.name) for each in state.ignored] == [
        ("unreadable", "Pod", "web-1")
    ]


def test_bare_numbers_are_quantities() -> None:
    """YAML turned into JSON by hand has numbers where kubectl has strings."""
    pod = decode_pod(containers=[container(cpu=2, memory=1024), container(cpu=0.5)])
    assert pod.spec.requests == {"cpu": 2500, "memory": 1024, "pods": 1}


@pytest.mark.parametrize(
    ("memory", "amount"),
    [("7Ei", 7 * 2**60), ("1e18", 10**18), ("9007199254740993", 2**53 + 1)],
)
def test_quantity_that_fits_nowhere_is_read_exactly(memory: str, amount: int) -> None:
    """The API server takes it, and the pod's owner wants to hear that it is too large."""
    pod = decode_pod(containers=[container(memory=memory)] * 3)
    assert pod.spec.requests["memory"] == 3 * amount


@pytest.mark.parametrize(
    ("quantity", "milli"),
    [
        ("1e3", 1_000_000),
        ("1E3", 1_000_000),
        ("1k", 1_000_000),
        ("1Ki", 1_024_000),
        ("0.5m", 1),
        ("100u", 1),
        ("1.5", 1500),
        (".5", 500),
        ("2.", 2000),
        ("+1", 1000),
        ("12e-1", 1200),
    ],
)
def test_quantity_is_read_as_kubernetes_writes_it(quantity: str, milli: int) -> None:
    """A suffix read wrongly makes a pod a thousand times too large or too small."""
    pod = decode_pod(containers=[container(cpu=quantity)])
    assert pod.spec.requests["cpu"] == milli


@pytest.mark.parametrize("quantity", ["1K", "1KB", "1kib", "1e", "1_000", "0x10", "\u0661", "1\n"])
def test_text_that_only_looks_like_a_quantity_is_none(quantity: str) -> None:
    """The API server refuses these; a guess at what was meant would be acted on."""
    state = decode(pod_json(containers=[container(cpu=quantity)]))
    assert [each.code for each in state.ignored] == ["unreadable"]


def resized(
    spec: str,
    has: str,
    allocated: str | None = None,
    *,
    reason: str = "",
    names: tuple[str, str] = ("c", "c"),
    kind: str = "containerStatuses",
) -> dict[str, Any]:
    """A pod of one container (and of one sidecar) that is being resized, to decode."""
    held = {"name": names[1], "resources": {"requests": {"cpu": has}}}
    if allocated is not None:
        held["allocatedResources"] = {"cpu": allocated}
    pending = [{"type": "PodResizePending", "status": "True", "reason": reason}] if reason else []
    mine = {**container(cpu=spec), "name": names[0]}
    other = {**container(cpu="1"), "name": "other"}
    own, init = (mine, []) if kind == "containerStatuses" else (other, [mine])
    return {
        "containers": [own],
        "initContainers": [{**each, "restartPolicy": "Always"} for each in init],
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}, *pending],
            "containerStatuses": [{"name": "other"}],
            kind: [{"name": "another", "resources": {}}, held],
        },
    }


@pytest.mark.parametrize(
    ("spec", "has", "allocated", "reason", "milli"),
    [
        ("1", "1", "1", "", 1000),
        ("1", "3", "3", "", 3000),
        ("1", "1", "3", "", 3000),
        ("1", "3", None, "", 3000),
        ("3", "1", "1", "", 3000),
        ("3", "1", "2", "Deferred", 3000),
        ("64", "1", "2", "Infeasible", 2000),
        ("64", "3", None, "Infeasible", 3000),
    ],
)
def test_pod_that_is_resized_counts_as_kube_scheduler_counts_it(
    spec: str, has: str, allocated: str | None, reason: str, milli: int
) -> None:
    """Room that it still holds would be promised to another pod, which then fits nowhere."""
    pod = decode_pod(**resized(spec, has, allocated, reason=reason))
    assert pod.spec.requests == {"cpu": milli, "pods": 1}


def test_sidecar_that_is_resized_counts_too_and_an_init_container_that_ended_does_not() -> None:
    """A sidecar holds what it has as long as the pod runs."""
    kind = "initContainerStatuses"
    sidecars = resized("1", "3", kind=kind)
    assert decode_pod(**sidecars).spec.requests["cpu"] == 4000
    for init_container in sidecars["initContainers"]:
        del init_container["restartPolicy"]
    assert decode_pod(**sidecars).spec.requests["cpu"] == 1000


@pytest.mark.parametrize(("reason", "milli"), [("", 4000), ("Infeasible", 3000)])
def test_pod_whose_resources_as_a_whole_are_resized_counts_in_the_same_way(
    reason: str, milli: int
) -> None:
    """Only what the pod asks for as a whole is counted as a whole."""
    requests = {"cpu": "4"}
    status = {
        "conditions": [{"type": "PodResizePending", "status": "True", "reason": reason}],
        "resources": {"requests": {"cpu": "2", "memory": "1Gi"}},
        "allocatedResources": {"cpu": "3", "memory": "1Gi"},
    }
    pod = decode_pod(resources={"requests": requests}, status=status)
    assert pod.spec.requests == {"cpu": milli, "pods": 1}


def test_status_of_another_container_does_not_count() -> None:
    """Statuses are sorted by name, containers are not."""
    assert decode_pod(**resized("1", "3", names=("a", "b"))).spec.requests["cpu"] == 1000


def test_resource_that_the_status_does_not_name_counts_as_the_spec_has_it() -> None:
    """A kubelet reports CPU and memory; a GPU is held all the same."""
    spec = resized("1", "3")
    spec["containers"][0]["resources"]["limits"] = {"nvidia.com/gpu": "2"}
    requests = decode_pod(**spec).spec.requests
    assert (requests["cpu"], requests["nvidia.com/gpu"]) == (3000, 2)


def test_pods_whose_status_repeats_the_spec_share_it_with_one_that_has_not_started() -> None:
    """Memory and time grow with the number of distinct specs."""
    running = resized("1", "1", "1")
    running["containers"][0]["name"] = "c"
    waiting = {key: value for key, value in running.items() if key != "status"}
    pods = decode(pod_json("a", **running), pod_json("b", **waiting)).pods
    assert pods[0].spec is pods[1].spec


def test_quantity_of_a_status_that_is_none_leaves_the_pod_out() -> None:
    """The API server stores no such status; a guess at what was meant would be acted on."""
    state = decode(pod_json(**resized("1", "much")))
    assert [each.code for each in state.ignored] == ["unreadable"]
