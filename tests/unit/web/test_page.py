"""The status page: what it shows, what it refuses to show, and how large it may get."""

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.model.errors import Unavailable
from reconciler.model.ids import NodeName
from reconciler.model.plan import Kept
from reconciler.model.text import rfc3339
from reconciler.web.overview import Overviews
from tests.builders import AWAY, HOME
from tests.unit.web.crowd import busy_day
from tests.unit.web.scene import HEADROOM, MISSING, STAND_INS, UPDATE, Scene, fleet, unplaced

PAGE_BYTES_MAX = 500_000


@pytest.fixture
def scene() -> Iterator[Scene]:
    """A server on a free port."""
    with Scene() as running:
        yield running


def test_page_escapes_everything_and_allows_only_its_own_script(scene: Scene) -> None:
    """Names and messages come from whoever may create a pod."""
    evil = '<script>alert("x")</script>'
    scene.cycle(unplaceable=(unplaced(evil, "zone", detail=f"'{evil}"),))
    scene.cycle(error=Unavailable("api", evil))
    _, headers, body = scene.ask("/")
    assert evil not in body
    assert "&lt;script&gt;alert(&#34;x&#34;)" in body
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    for kind in ("style", "script"):
        (own,) = re.findall(rf"<{kind}>(.*?)</{kind}>", body, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert not re.search(r"src=|url\(|@import| style=| on[a-z]+=", body)
    assert not re.search(r'href="(?![?#]|api/|metrics)', body)


def test_page_says_what_is_under_way_and_only_then(scene: Scene) -> None:
    """A halted update or headroom that is missing must not hide between the fleets' figures."""
    scene.cycle(fleets=(fleet(),))
    assert "rolling update" not in scene.ask("/")[2]
    scene.cycle(
        fleets=(replace(fleet(), update=UPDATE),), stand_ins=(STAND_INS,), headroom=(HEADROOM,)
    )
    scene.board.drift_found((MISSING,))
    body = scene.ask("/")[2]
    assert f"rolling update of primary-small in us-west-2 to version {UPDATE.version}" in body
    assert "headroom of web (2 nodes): 1 of 2 missing" in body
    scene.cycle(fleets=(fleet(),), headroom=(replace(HEADROOM, sector=""),))
    assert "headroom (2 nodes): 1 of 2 missing" in scene.ask("/")[2]
    assert "2 nodes of primary-steady standing in for primary-small" in body
    assert f'<span class="chip warn">{MISSING.kind}</span>' in body


def test_page_says_when_the_next_node_goes(scene: Scene) -> None:
    """That nodes go "as soon as possible" says nothing while their timers run."""
    at = scene.clock.now()
    kept = (
        Kept(node=NodeName("a"), code="idle-time", detail="9m to go", until=at + timedelta(0, 540)),
        Kept(node=NodeName("b"), code="idle-time", detail="5s to go", until=at + timedelta(0, 5)),
        Kept(node=NodeName("c"), code="in-use", detail="it is used again"),
    )
    scene.cycle(kept=kept)
    steps = json.loads(scene.ask("/api/status")[2])["next"]
    first = rfc3339(at + timedelta(0, 5))
    assert [(step["at"], step["what"]) for step in steps] == [
        (first, "2 nodes to be removed when the idle time ends"),
        (rfc3339(at + timedelta(seconds=20)), "the next plan at the latest"),
    ]
    assert steps[0]["why"] == "b: 5s to go"


def test_steps_of_fleets_of_one_name_name_their_regions(scene: Scene) -> None:
    """Two equal lines do not say where a node comes, or which fleet goes."""
    here = fleet(launching=1, removal="2 nodes left")
    scene.cycle(fleets=(here, replace(here, region=AWAY)))
    steps = {step["what"] for step in json.loads(scene.ask("/api/status")[2])["next"]}
    for region in (HOME, AWAY):
        assert f"1 node of primary-small in {region} will join" in steps
        assert f"primary-small in {region} is emptied and removed" in steps


def test_page_names_no_time_for_a_plan_that_is_overdue(scene: Scene) -> None:
    """An hour of failed cycles showed the next plan an hour ago."""
    scene.cycle()
    scene.clock.wait_seconds(3600)
    scene.cycle(error=Unavailable("describe_fleets", "no answer"))
    (step,) = json.loads(scene.ask("/api/status")[2])["next"]
    assert step == {
        "at": None,
        "what": "the next plan, when a cycle succeeds",
        "why": "the last cycle failed; it is tried again after each pause",
    }


@pytest.fixture(scope="module")
def crowd() -> Iterator[Scene]:
    """A thousand nodes and ten thousand pending pods after a whole day."""
    with Scene() as running:
        busy_day(running, hours=4)
        yield running


def test_page_of_a_crowded_cluster_is_small_and_says_what_it_leaves_out(crowd: Scene) -> None:
    """With 501 pods a list that ends at 200 without a word is a lie."""
    _, _, body = crowd.ask("/")
    assert len(body.encode()) < PAGE_BYTES_MAX
    assert "10,000 pods of 60 workloads" in body
    assert "Workloads 1 to 12 of 60" in body
    assert "Nodes 1 to 25 of 1000" in body
    assert "3333 waiting for nodes, 6667 that no fleet can run" in body


def test_every_page_of_a_long_list_can_be_reached(crowd: Scene) -> None:
    """What is not on the first page must be one click away."""
    seen: set[str] = set()
    target = "/?node_page=1"
    for _ in range(50):
        body = crowd.ask(target)[2]
        seen |= set(re.findall(r"<strong>(ip-[^<]+)</strong><div class=\"sub\">", body))
        following = re.search(r'id="nodes-next" href="([^"#]+)#nodes"', body)
        if following is None:
            break
        target = "/" + following[1].replace("&amp;", "&")
    assert len(seen) == 1000


def test_page_of_many_fleets_is_small_and_each_fleet_can_be_found(scene: Scene) -> None:
    """The page is fetched again every five seconds: 1,000 fleets made it larger than 800 kB."""
    names = [f"sector{number}-small" for number in range(1000)]
    many = tuple(fleet(fleet=name, unavailable="cooling off " * 20) for name in names)
    scene.cycle(fleets=(*many, fleet(fleet="other-small", region=AWAY, state="missing")))
    target, seen = "/?fleet_page=1", set()
    for _ in range(25):
        body = scene.ask(target)[2]
        assert len(body.encode()) < PAGE_BYTES_MAX / 5
        seen |= set(re.findall(r"<strong>(sector\d+-small)</strong>", body))
        following = re.search(r'id="fleets-next" href="([^"#]+)#fleets"', body)
        if following is None:
            break
        target = "/" + following[1].replace("&amp;", "&")
    assert seen == set(names)
    found = scene.ask(f"/?fleets=missing+{AWAY}")[2]
    assert "1,001, 1 match" in found
    assert "<strong>other-small</strong>" in found
    assert "No fleet matches." in scene.ask("/?fleets=nosuch")[2]


def test_filters_find_nodes_workloads_and_decisions(crowd: Scene) -> None:
    """At a thousand nodes people search."""
    held = crowd.ask("/?nodes=safety-stop")[2]
    assert "1,000, 1 match" in held
    assert "60 workloads, 20 match" in crowd.ask("/?pods=insufficient-memory")[2]
    failed = crowd.ask("/?kind=failed")[2]
    decisions = failed[failed.index('id="history"') :]
    assert "UnauthorizedOperation" in decisions
    assert '<span class="chip applied">' not in decisions


@pytest.mark.parametrize(
    "target",
    ["/?node_page=-1", "/?node_page=99999999999", "/?kind=<script>", "/?a=1" + "&a=1" * 50, "/?%"],
)
def test_parameters_that_make_no_sense_show_the_page_all_the_same(
    scene: Scene, target: str
) -> None:
    """Whoever may ask may ask anything."""
    scene.cycle(fleets=(fleet(),))
    status, _, body = scene.ask(target)
    assert status == 200
    assert "<script>&" not in body


def test_lists_of_the_page_are_worked_out_once_per_plan(scene: Scene) -> None:
    """Many browsers that refresh the page of a large cluster must not slow the next plan."""
    overviews = Overviews()
    scene.cycle(unplaceable=(unplaced("a", "zone"),))
    first = overviews.of(scene.board.view)
    assert overviews.of(scene.board.view) is first
    scene.cycle(unplaceable=(unplaced("b", "zone"),))
    assert overviews.of(scene.board.view) != first


def test_explanations_need_a_plan_and_a_name(scene: Scene) -> None:
    """`reconciler explain` asks here first."""
    assert scene.ask("/api/explain")[0] == 400
    assert scene.ask("/api/explain?pod=" + "&pod=".join(f"ns/{n}" for n in range(60)))[0] == 400
    assert scene.ask("/api/explain?pod=ns/a")[0] == 503
