"""Files as kubectl writes them, and as people mangle them."""

import json
from typing import Any

import pytest

from reconciler.model.errors import InputError
from reconciler.model.snapshot import Ignored
from reconciler.records.kubernetes import split_documents
from tests.unit.records.kubernetes.kube import decode, decode_body, node_json, object_json, pod_json


def without_kind(found: dict[str, Any]) -> dict[str, Any]:
    """An object as a typed list has it."""
    return {key: value for key, value in found.items() if key not in {"kind", "apiVersion"}}


@pytest.mark.parametrize(
    "body",
    [
        json.dumps({"kind": "List", "items": [pod_json("a"), pod_json("b")]}),
        json.dumps({"kind": "List", "items": [pod_json("a"), pod_json("b")]}, indent=4),
        json.dumps({"kind": "PodList", "items": [without_kind(pod_json(n)) for n in "ab"]}),
        json.dumps({"items": [pod_json("a"), pod_json("b")]}),
        json.dumps(
            {"kind": "List", "items": [{"kind": "List", "items": [pod_json(n)]} for n in "ab"]}
        ),
        json.dumps([{"kind": "PodList", "items": [without_kind(pod_json(n))]} for n in "ab"]),
        json.dumps([pod_json("a"), pod_json("b")]),
        "\n".join(json.dumps(pod_json(n)) for n in "ab"),
        "\n\n".join(json.dumps(pod_json(n), indent=2) for n in "ab"),
        "\ufeff" + json.dumps({"kind": "List", "items": [pod_json("a"), pod_json("b")]}),
    ],
)
def test_every_form_of_a_list_gives_the_same_pods(body: str) -> None:
    """A form that is misread plans for an empty cluster."""
    assert [pod.key.name for pod in decode_body(body.encode()).pods] == ["a", "b"]


def test_one_object_is_a_file_too() -> None:
    """`kubectl get pod x -o json` prints no list."""
    assert [node.name for node in decode_body(json.dumps(node_json()).encode()).nodes]


@pytest.mark.parametrize("items", ["[]", "null"])
def test_empty_list_is_an_empty_cluster(items: str) -> None:
    """Nothing found is an answer."""
    assert decode_body(b'{"kind":"PodList","items":%s}' % items.encode()).pods == ()


def test_same_object_twice_counts_once_and_the_last_one_holds() -> None:
    """Overlapping files would double the demand."""
    state = decode(pod_json("a"), pod_json("a", nodeName="n1"), node_json(), node_json())
    assert [pod.node_name for pod in state.pods] == ["n1"]
    assert len(state.nodes) == 1


def test_pods_of_one_name_and_different_uid_are_two() -> None:
    """Names are reused; the uid is the pod."""
    other = pod_json("a", metadata={"uid": "later"})
    assert len(decode(pod_json("a"), other).pods) == 2


def test_unused_kinds_are_counted_foreign_groups_included() -> None:
    """A Rancher `Node` is no node."""
    state = decode(
        object_json("Secret"),
        object_json("Secret"),
        object_json("Node", api="management.cattle.io/v3"),
    )
    assert state.nodes == ()
    assert state.ignored == (
        Ignored(code="unused-kind", kind="Node", count=1),
        Ignored(code="unused-kind", kind="Secret", count=2),
    )


@pytest.mark.parametrize("item", [None, 5, "pod", [], {}, {"kind": 5}, {"kind": "Pod"}])
def test_item_that_is_no_object_is_reported(item: Any) -> None:
    """One bad item must not cost the rest of the list."""
    state = decode(item, pod_json("a"))
    assert len(state.pods) == 1
    assert [each.code for each in state.ignored] == ["unreadable"]


def test_nan_in_one_object_spoils_only_that_one() -> None:
    """Python writes NaN where JSON has none."""
    broken = node_json("bad", status={"allocatable": {"cpu": float("nan")}})
    state = decode(broken, node_json("good"))
    assert [(node.name, node.unreadable) for node in state.nodes] == [
        ("bad", True),
        ("good", False),
    ]


@pytest.mark.parametrize(
    ("body", "where", "what"),
    [
        (b"", "f", "is empty"),
        (b" \n", "f", "is empty"),
        (b"\x89PNG\r\n\xff", "f", "UTF-8"),
        (b'{"kind": "List",\n "items": [}', "f:2:12", "is not JSON"),
        (b"apiVersion: v1\nkind: List\n", "f:1:1", "is not JSON"),
        (b'{"Fleets": []}', "f", "no Kubernetes objects"),
        (b"5", "f", "no Kubernetes objects"),
        (b'{"kind":"List","items":5}', "f", "is not a list"),
        (b"[" * 200_000, "f", "nested too deeply"),
        (
            b'{"kind":"List","items":[' * 11 + b'{"kind":"Pod"}' + b"]}" * 11,
            "f",
            "more than 8 deep",
        ),
    ],
)
def test_file_that_is_no_cluster_says_where_and_why(body: bytes, where: str, what: str) -> None:
    """A traceback, or a plan for an empty cluster, would be the alternative."""
    with pytest.raises(InputError) as caught:
        split_documents(body, "f")
    assert caught.value.where == where
    assert what in caught.value.what
    assert "\n" not in str(caught.value)


CUT_OFF = {"continue": "abc", "remainingItemCount": 100}


@pytest.mark.parametrize(
    "body",
    [
        json.dumps({"kind": "List", "metadata": CUT_OFF, "items": [pod_json()]}),
        json.dumps({"kind": "PodList", "metadata": {"continue": "a"}, "items": [pod_json()]}),
        json.dumps({"kind": "PodList", "metadata": {"remainingItemCount": 1}, "items": None}),
        '{"kind": "PodList", "metadata": {"continue": "a"}, "items": [{"a": NaN}]}',
        "\n".join(
            json.dumps({"kind": f"{kind}List", "metadata": more, "items": []})
            for kind, more in (("Pod", {"continue": "a"}), ("Node", {}))
        ),
        json.dumps(
            [
                {"kind": "PodList", "metadata": {}, "items": []},
                {"kind": "PodList", "metadata": {"continue": "a"}, "items": []},
            ]
        ),
        json.dumps(
            {"kind": "List", "items": [{"kind": "PodList", "metadata": CUT_OFF, "items": []}]}
        ),
    ],
)
def test_list_that_was_cut_off_is_refused(body: str) -> None:
    """The node whose pods come on the next page looks empty, and would be ended."""
    with pytest.raises(InputError) as caught:
        split_documents(body.encode(), "f")
    assert caught.value.where == "f"
    assert "was cut off" in caught.value.what


def test_pages_of_a_list_in_one_file_are_a_whole_list() -> None:
    """The last page says that nothing follows."""
    pages = (("a", {"continue": "x", "remainingItemCount": 1}), ("b", {"continue": ""}))
    lines = (
        json.dumps({"kind": "PodList", "metadata": more, "items": [without_kind(pod_json(name))]})
        for name, more in pages
    )
    assert len(decode_body("\n".join(lines).encode()).pods) == 2


def test_odd_metadata_of_a_list_is_no_fault_of_its_objects() -> None:
    """What other programs write there says nothing about the list."""
    body = json.dumps({"kind": "List", "metadata": 5, "items": [pod_json()]}).encode()
    assert len(decode_body(body).pods) == 1


def test_half_a_surrogate_pair_makes_an_object_unreadable_and_printable() -> None:
    """One odd name would make the whole plan unprintable."""
    body = (
        b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a\\ud800"},"spec":{"nodeName":"n"}}'
    )
    state = decode_body(body)
    assert state.pods[0].unreadable
    assert state.ignored[0].name.encode() == b"a?"
