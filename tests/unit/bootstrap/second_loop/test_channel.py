"""What the process of the second loop may tell the capacity loop."""

import base64
import json
from typing import Any

import pytest

from reconciler.bootstrap.second_loop.channel import Turn, decode, encode
from reconciler.gitops.repository.followed import BranchConfig, FollowedConfig, config_of
from reconciler.gitops.repository.status import ClusterProgress
from reconciler.model.errors import InputError, Problem
from reconciler.ports.repository import CommitId

COMMIT = CommitId("a" * 40)
CONFIG = FollowedConfig(
    path="clusters/a/sectors.yaml",
    commit=COMMIT,
    content=b"cluster: a\n\xff",
    files={"policy.yaml": b"kind: DeschedulerPolicy\n"},
)
FAULT = Problem(line=1, column=2, path="x", code="config/type", message="no number")
PROGRESS = ClusterProgress(config="sectors.yaml", cluster="a", stage="applied", asks_for_live=True)


@pytest.mark.parametrize(
    "message",
    [
        BranchConfig(config=CONFIG),
        BranchConfig(config=None, trouble="no config", problems=(FAULT,)),
        BranchConfig(config=CONFIG, trouble="two configs", remedy="remove one"),
        Turn(text="at abc: unchanged", progress=(PROGRESS,)),
        Turn(text="at abc: stands by", progress=None),
        Turn(text="failed: no answer", progress=None, failed=True),
        Turn(text="at abc: sectors.yaml: refused", progress=(PROGRESS,), failed=True),
    ],
)
def test_messages_arrive_as_they_were_sent(message: Any) -> None:
    """A limit that is lost on the way is a limit that is not in force."""
    line = encode(message)
    assert line.count(b"\n") == 1
    assert decode(line) == message


def followed(**changed: Any) -> bytes:
    """A message of a config, with parts changed."""
    content = base64.b64encode(b"cluster: a\n").decode()
    config = {"path": "sectors.yaml", "commit": COMMIT, "content": content, "files": {}, **changed}
    return json.dumps(
        {"type": "followed", "config": config, "trouble": "", "problems": [], "remedy": ""}
    ).encode()


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"not json\n",
        b"[" * 100_000,
        b'{"type": "run", "command": "id"}',
        b'{"type": "turn", "text": 5, "progress": null, "failed": true}',
        json.dumps({"type": "turn", "text": "x" * 5000, "progress": None, "failed": True}).encode(),
        followed(commit="HEAD"),
        followed(content="not base64!"),
        followed(files={"../../etc/passwd": ""}),
        followed(files={"/etc/passwd": ""}),
        followed(files={f"{n}": "" for n in range(9)}),
    ],
)
def test_anything_else_is_refused(line: bytes) -> None:
    """Whoever takes over the process that reads the repository must not get any further."""
    with pytest.raises(InputError, match="the process of the second loop"):
        decode(line)


@pytest.mark.parametrize(
    ("cluster", "named", "path", "trouble"),
    [
        ("", {"sectors.yaml": "a"}, "sectors.yaml", ""),
        ("a", {"x.yaml": "a", "y.yaml": "b"}, "x.yaml", ""),
        ("c", {"x.yaml": "a", "y.yaml": ""}, "y.yaml", ""),
        ("c", {"x.yaml": "a"}, "", "no sector config of the branch is for cluster c"),
        ("", {"x.yaml": "a", "y.yaml": "b"}, "", "name one with --cluster-name"),
        ("a", {"x.yaml": "a", "y.yaml": "a"}, "", "are for cluster a: x.yaml, y.yaml"),
        ("a", {}, "", "no sector config of the names"),
    ],
)
def test_capacity_loop_follows_the_config_of_its_cluster_alone(
    cluster: str, named: dict[str, str], path: str, trouble: str
) -> None:
    """Fleets of one cluster must never be sized by the config of another."""
    found, why = config_of(cluster, named)
    assert found == path
    assert trouble in why
    assert bool(why) == (not path)
