"""Lists in pages: all of them count, and one that comes too late costs no pod."""

import gzip
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from msgspec import Raw

from reconciler.adapters.kubernetes import connect
from reconciler.adapters.kubernetes.kinds import KINDS
from reconciler.adapters.kubernetes.listing import read_list
from reconciler.model.errors import Unavailable
from tests.contract.kubernetes_api import ApiScript, kubeconfig, watching
from tests.contract.scripted import Answer, Request, json_answer, scripted_server

PODS = next(kind for kind in KINDS if kind.name == "Pod")


def lists_pods(request: Request) -> bool:
    """Whether it asks for a page of pods, or for all of them."""
    return request.path.startswith("/api/v1/pods") and "watch=1" not in request.path


def of_no_interest(request: Request) -> Answer:
    """Watches without events, and empty lists of the other kinds."""
    return Answer(lines=()) if "watch=1" in request.path else ApiScript()(request)


def page_of_two(request: Request) -> Answer:
    """Two pages with one pod each, `a` and `b`."""
    second = "continue=more" in request.path
    pod = {"metadata": {"name": "b" if second else "a", "namespace": "web"}, "spec": {}}
    metadata = {"resourceVersion": "7", **({} if second else {"continue": "more"})}
    return json_answer({"metadata": metadata, "items": [pod]})


def test_pages_of_a_list_add_up(tmp_path: Path) -> None:
    """Only the first thousand pods would be seen."""

    def script(request: Request) -> Answer:
        if not lists_pods(request):
            return of_no_interest(request)
        return page_of_two(request)

    with watching(tmp_path, script) as cluster:
        assert [pod.key.name for pod in cluster.observe().pods] == ["a", "b"]


def test_date_of_an_answer_is_the_servers_time(tmp_path: Path) -> None:
    """Our own clock, an hour ahead, would be the only one that says how old an instance is."""
    theirs = datetime.now(UTC) - timedelta(hours=1)  # noqa: TID251 - what the server's clock shows

    def script(request: Request) -> Answer:
        found = of_no_interest(request) if not lists_pods(request) else page_of_two(request)
        return found._replace(headers={**found.headers, "Date": format_datetime(theirs)})

    with watching(tmp_path, script) as cluster:
        told = cluster.observe().server_time
    assert told is not None
    assert abs(told - theirs) < timedelta(minutes=1)


def test_page_that_comes_too_late_is_made_up_by_a_whole_list(tmp_path: Path) -> None:
    """A list that outlives its snapshot on the server would never be complete."""

    def script(request: Request) -> Answer:
        if not lists_pods(request):
            return of_no_interest(request)
        if "continue=" in request.path:
            return json_answer({"kind": "Status", "code": 410}, 410)
        pods = [{"metadata": {"name": name, "namespace": "web"}, "spec": {}} for name in "ab"]
        paged = "limit=" in request.path
        metadata = {"resourceVersion": "7", **({"continue": "more"} if paged else {})}
        return json_answer({"metadata": metadata, "items": pods[:1] if paged else pods})

    with watching(tmp_path, script) as cluster:
        assert [pod.key.name for pod in cluster.observe().pods] == ["a", "b"]


def test_list_that_expired_once_is_taken_in_pages_again(tmp_path: Path) -> None:
    """A whole list of a large cluster, held at once, is more memory than the program may have."""
    asked: list[str] = []

    def script(request: Request) -> Answer:
        if not lists_pods(request):
            return of_no_interest(request)
        asked.append(request.path)
        if "continue=" in request.path and len(asked) == 2:
            return json_answer({"kind": "Status", "code": 410}, 410)
        return page_of_two(request)

    with watching(tmp_path, script) as cluster:
        assert [pod.key.name for pod in cluster.observe().pods] == ["a", "b"]
    assert ["limit=" in path for path in asked[:4]] == [True] * 4


def test_snapshot_of_a_list_that_expired_is_taken_again(tmp_path: Path) -> None:
    """A snapshot of a large cluster failed, each time after minutes."""
    expires: list[bool] = []

    def script(request: Request) -> Answer:
        if not lists_pods(request):
            return of_no_interest(request)
        if "continue=" in request.path and expires and expires.pop():
            return json_answer({"kind": "Status", "code": 410}, 410)
        return page_of_two(request)

    with watching(tmp_path, script) as cluster:
        expires.append(True)
        pods = [each for each in cluster.raw() if each["kind"] == "Pod"]
    assert [pod["metadata"]["name"] for pod in pods] == ["a", "b"]
    assert {pod["apiVersion"] for pod in pods} == {"v1"}


LARGE = range(10, 30)
"""Which of forty pods have 2,000 bytes more than the others."""


def paged(limits: list[int]) -> Callable[[Request], Answer]:
    """A server of forty pods that notes how many it is asked for at once."""

    def script(request: Request) -> Answer:
        query = parse_qs(urlsplit(request.path).query)
        limit, begin = int(query["limit"][0]), int(query.get("continue", ["0"])[0])
        limits.append(limit)
        items = [
            {"metadata": {"name": f"p{i:02}"}, "args": "x" * 2000 if i in LARGE else ""}
            for i in range(begin, min(begin + limit, 40))
        ]
        rest = {"continue": str(begin + limit)} if begin + limit < 40 else {}
        return json_answer({"metadata": {"resourceVersion": "7", **rest}, "items": items})

    return script


def test_pages_of_large_objects_have_fewer_of_them(tmp_path: Path) -> None:
    """850 pods of 1.3 MB came in one answer: the program was killed for it at each list."""
    limits: list[int] = []
    found: list[int] = []
    with scripted_server(paged(limits)) as url:
        transport = connect(kubeconfig(tmp_path, url))
        take: Callable[[list[Raw]], None] = lambda page: found.append(len(page))  # noqa: E731
        read_list(transport, PODS, lambda: None, take, page_objects=10, page_bytes=10_000)
        transport.close()
    assert sum(found) == 40
    assert limits[:5] == [10, 10, 5, 2, 4]
    assert limits[-1] == 8


def packed(answer: Answer) -> Answer:
    """The same as API servers answer from 128 KiB on: compressed, and in chunks."""
    body = gzip.compress(answer.body)
    chunks = [body[begin : begin + 100] for begin in range(0, len(body), 100)]
    lines = [part for chunk in chunks for part in (b"%x\r" % len(chunk), chunk + b"\r")]
    headers = {"Content-Encoding": "gzip", "Transfer-Encoding": "chunked"}
    return Answer(headers=headers, lines=[*lines, b"0\r", b"\r"])


def test_pages_that_are_compressed_are_read_and_bounded(tmp_path: Path) -> None:
    """No list of a cluster with some dozen pods could be read."""
    limits: list[int] = []
    found: list[int] = []
    plain = paged(limits)
    with scripted_server(lambda request: packed(plain(request))) as url:
        transport = connect(kubeconfig(tmp_path, url))
        take: Callable[[list[Raw]], None] = lambda page: found.append(len(page))  # noqa: E731
        read_list(transport, PODS, lambda: None, take, page_objects=10, page_bytes=10_000)
        transport.close()
    assert sum(found) == 40
    assert limits[:5] == [10, 10, 5, 2, 4]


def test_object_that_is_no_page_by_itself_ends_the_list(tmp_path: Path) -> None:
    """The list would be asked for again and again without an end."""
    limits: list[int] = []
    with scripted_server(paged(limits)) as url:
        transport = connect(kubeconfig(tmp_path, url))
        with pytest.raises(Unavailable, match="answered more than 1,000 bytes"):
            read_list(
                transport,
                PODS,
                lambda: None,
                lambda _: None,
                page_objects=10,
                page_bytes=1000,
            )
        transport.close()
    assert limits[-1] == 1
