"""The states that an on-call engineer meets, over an EC2 and an API server that really misbehave.

Page and terminal say each in their first line. `RECONCILER_SCREENSHOTS=DIR` keeps both as pictures,
where there is a Chromium.
"""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from reconciler.sandbox.stack import Sandbox
from tests.browser.chromium import SCREENSHOTS, browser, executable, keep_screenshot
from tests.sandbox.capacity.commands import reconciler
from tests.sandbox.capacity.world import Program, Start, World
from tests.sandbox.faults.conftest import CONFIG, Put, empty
from tests.waiting import until

pytestmark = pytest.mark.sandbox

WANTED = bool(os.environ.get(SCREENSHOTS, ""))  # noqa: TID251 - a switch of the tests alone
OURS = {"user_agent": "fleet-reconciler"}


@dataclass(frozen=True, kw_only=True)
class Scene:
    """What a state is made with."""

    world: World
    put: Put
    config_file: Path
    start: Start

    def configure(self, text: str) -> None:
        """Write the sector config."""
        self.config_file.write_text(text)

    def pod(self) -> None:
        """A pod that needs a node."""
        self.world.add_pods(["waits"], cpu="1")


def denied(scene: Scene) -> Program:
    """The role may look, and may not raise."""
    call = {"fault": "error", "code": "UnauthorizedOperation", "actions": "ModifyFleet", **OURS}
    scene.put(aws={"calls": [call]})
    running = scene.start()
    running.until_ready()
    scene.pod()
    return running


def silent(scene: Scene) -> Program:
    """Calls are accepted, and never answered."""
    running = scene.start()
    running.until_ready()
    scene.put(aws={"calls": [{"fault": "no-answer", **OURS}]})
    return running


def server_down(scene: Scene) -> Program:
    """Whatever stands before the API server answers 503."""
    request = {"fault": "service-unavailable", "retry_after": 0, **OURS}
    scene.put(kubernetes={"requests": [request]})
    return scene.start()


def refused(scene: Scene) -> Program:
    """A typo comes with a commit."""
    running = scene.start()
    running.until_ready()
    scene.configure(CONFIG.replace("max_capacity: 20", "max_capacity: many", 1))
    return running


def queue_gone(scene: Scene) -> Program:
    """The config names a queue that does not exist."""
    url = f"{scene.world.sandbox.aws_url}/123456789012/gone"
    scene.configure(f"{CONFIG}interruption: {{queue_url: '{url}'}}\n")
    running = scene.start()
    running.until_ready()
    return running


def lost(scene: Scene) -> Program:
    """Somebody else holds the Lease."""
    running = scene.start()
    running.until_event("leading_began", lambda _: True)
    make: Any = client.CoordinationV1Api
    api = make(scene.world.api)
    leases = api.list_lease_for_all_namespaces().items
    (found,) = [lease.metadata for lease in leases if lease.metadata.name == "fleet-reconciler"]
    body = {"spec": {"holderIdentity": "another", "leaseDurationSeconds": 3600}}
    api.patch_namespaced_lease(found.name, found.namespace, body)
    return running


def dry(scene: Scene) -> Program:
    """EC2 has no instance of any type."""
    scene.put(aws={"capacity": [{"fleet": "*"}]})
    running = scene.start()
    running.until_ready()
    scene.pod()
    return running


def tight(scene: Scene) -> Program:
    """No node is as cheap as the limit asks for."""
    scene.configure(CONFIG + "max_hourly_usd: 0.01\n")
    running = scene.start()
    running.until_ready()
    scene.pod()
    return running


STATES: tuple[tuple[Callable[[Scene], Program], str], ...] = (
    (denied, "DEGRADED: EC2 denies ModifyFleet: "),
    (silent, "FAILING: EC2 does not answer: "),
    (server_down, "FAILING: API server unreachable: "),
    (refused, "DEGRADED: Config refused: "),
    (queue_gone, "DEGRADED: Interruption queue fails: "),
    (lost, "DEGRADED: Lease lost: "),
    (dry, "LIMITED: No capacity for 1 pod: "),
    (tight, "LIMITED: Budget too tight for 1 pod: "),
)


@pytest.mark.parametrize(("make", "line"), STATES, ids=[made.__name__ for made, _ in STATES])
def test_bad_state_is_the_first_line_of_terminal_and_page(
    sandbox: Sandbox,
    world: World,
    put: Put,
    config_file: Path,
    program: Start,
    make: Callable[[Scene], Program],
    line: str,
) -> None:
    """A status that looks healthy while nothing works costs a night."""
    empty(world)
    running = make(Scene(world=world, put=put, config_file=config_file, start=program))
    level, _, headline = line.removesuffix(": ").partition(": ")
    until(lambda: f"{line}{verdict(running)}", lambda: headline in verdict(running)["text"])
    said = reconciler(sandbox, "status", "--listen", running.address(), "--output", "table").stdout
    assert said.startswith(line), said
    page = running.get("/")[1]
    lead = page[page.index('class="lead"') :]
    assert level.lower() in lead[:200].lower()
    assert headline in lead[:400]
    if WANTED:
        keep_pictures(running, make.__name__, said)


def verdict(running: Program) -> dict[str, Any]:
    """What the program says of itself."""
    found: dict[str, Any] = json.loads(running.get("/api/status")[1])["verdict"]
    return found


def keep_pictures(running: Program, name: str, said: str) -> None:
    """The page and the terminal as pictures."""
    executable()
    with browser() as chromium:
        tab = chromium.new_page(viewport={"width": 1280, "height": 900})
        tab.goto(f"http://{running.address()}/")
        keep_screenshot(tab, f"{name}-page")
        cause = tab.locator(".cause").bounding_box()
        whole = {"x": 0, "y": 56, "width": 1280, "height": cause["y"] + cause["height"] - 40}
        keep_screenshot(tab, f"{name}-first-lines", clip=whole)
        tab.set_content("<pre style='font:14px monospace;white-space:pre-wrap'></pre>")
        tab.locator("pre").evaluate("(e, text) => { e.textContent = text; }", said)
        keep_screenshot(tab, f"{name}-terminal")
