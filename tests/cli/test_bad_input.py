"""Every command meets every kind of bad input with one clear line and the right exit code."""

from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.cli.main import run
from tests.command import reconciler

CONFIG = """cluster: analytics
regions: [us-west-2]
sectors:
  primary:
    kind: memory
    fleets:
    - {size: small}
"""
CLUSTER = '{"kind": "List", "apiVersion": "v1", "items": []}'


def missing(path: Path) -> None:
    """No such file."""


def directory(path: Path) -> None:
    """A directory of that name."""
    path.mkdir()


def binary(path: Path) -> None:
    """Bytes that are no text."""
    path.write_bytes(bytes(range(256)) * 64)


def empty(path: Path) -> None:
    """Nothing."""
    path.write_bytes(b"")


def huge(path: Path) -> None:
    """Larger than any honest config; sparse, so that it costs nothing."""
    with path.open("wb") as stream:
        stream.truncate(3 << 30)


def wrong_shape(path: Path) -> None:
    """Well-formed, but something else."""
    path.write_text('["a", 1, null]\n')


def truncated(path: Path) -> None:
    """Cut off in the middle."""
    path.write_text('{"kind": "List", "items": [{"kind": "Pod", "meta')


def nested(path: Path) -> None:
    """Deeper than anybody writes: Python gives up with an error of its own."""
    path.write_text("[" * 200_000)


BAD = (missing, directory, binary, empty, huge, wrong_shape, truncated, nested)
COMMANDS = {
    "validate": ("validate", "BAD"),
    "render": ("render", "--config", "BAD", "--out", "out"),
    "plan --config": ("plan", "--config", "BAD", "--cluster", "cluster.json"),
    "plan --cluster": ("plan", "--config", "good.yaml", "--cluster", "BAD"),
    "plan --aws": ("plan", "--config", "good.yaml", "--cluster", "cluster.json", "--aws", "BAD"),
    "plan --catalogue": (
        "plan", "--config", "good.yaml", "--cluster", "cluster.json", "--catalogue", "BAD",
    ),
    "catalogue show": ("catalogue", "show", "--catalogue", "BAD"),
    "plan live": ("plan", "--config", "good.yaml", "--kubeconfig", "BAD"),
    "run": ("run", "--once", "--listen", "127.0.0.1:0", "--config", "BAD"),
    "run --kubeconfig": (
        "run", "--once", "--listen", "127.0.0.1:0", "--config", "good.yaml", "--kubeconfig", "BAD",
    ),
    "snapshot": ("snapshot", "--config", "BAD", "--out", "out"),
    "gitops": ("gitops", "--once", "--repository", "BAD"),
    "ci plan": ("ci", "plan", "--dir", "BAD", "--out", "out"),
    "ci apply": ("ci", "apply", "--dir", "terraform", "--plan", "BAD"),
    "demo --trace": ("demo", "--out", "out", "--trace", "BAD"),
}  # fmt: skip


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.__name__)
@pytest.mark.parametrize("command", COMMANDS)
def test_bad_input_is_one_line_and_an_exit_code(
    command: str, bad: Callable[[Path], None], tmp_path: Path
) -> None:
    """At three in the morning a traceback says nothing, and a silent success says worse."""
    (tmp_path / "good.yaml").write_text(CONFIG)
    (tmp_path / "cluster.json").write_text(CLUSTER)
    (tmp_path / "terraform").mkdir()
    bad(tmp_path / "BAD")
    done = reconciler(*COMMANDS[command], cwd=tmp_path)
    assert done.returncode in {1, 2}, (done.returncode, done.stdout[-500:], done.stderr[-500:])
    assert "Traceback" not in done.stderr
    assert "for a traceback" not in done.stderr  # of an exception that nobody expected
    if command != "validate":
        errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        assert errors, done.stderr[-800:]
        assert len(max(errors, key=len)) < 1_000


@pytest.mark.parametrize("command", ["validate", "render", "plan --config", "run", "snapshot"])
def test_bad_config_exits_2(command: str, tmp_path: Path) -> None:
    """Scripts tell an invalid config from a failure by the code."""
    (tmp_path / "cluster.json").write_text(CLUSTER)
    (tmp_path / "BAD").write_text(
        "cluster: analytics\nsectors: {primary: {fleets: [{size: huge}]}}\n"
    )
    done = reconciler(*COMMANDS[command], cwd=tmp_path)
    assert done.returncode == 2, done.stderr


FILES = {
    "missing": "no such file",
    "directory": "is a directory",
}
NAMED_BY = {
    "plan --config": ("plan", "--cluster", "cluster.json", "--config"),
    "plan --cluster": ("plan", "--config", "good.yaml", "--cluster"),
    "plan --aws": ("plan", "--config", "good.yaml", "--cluster", "cluster.json", "--aws"),
    "plan --catalogue": (
        "plan", "--config", "good.yaml", "--cluster", "cluster.json", "--catalogue",
    ),
    "plan --kubeconfig": ("plan", "--config", "good.yaml", "--kubeconfig"),
    "render": ("render", "--out", "out", "--config"),
    "manifest": ("manifest", "--image", "a:1", "--config"),
    "simulate --demand": ("simulate", "--config", "good.yaml", "--out", "out", "--demand"),
    "import --programs": ("import", "--out", "out", "--programs"),
    "import --aws": ("import", "--cluster-name", "a", "--out", "out", "--aws"),
    "record --ca-file": (
        "record", "--out", "out", "--prometheus", "https://127.0.0.1:1", "--ca-file",
    ),
    "status --listen-token-file": ("status", "--listen-token-file"),
    "sandbox up --faults": ("sandbox", "up", "--faults"),
    "demo --trace": ("demo", "--out", "out", "--trace"),
}  # fmt: skip


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("command", NAMED_BY)
def test_file_that_cannot_be_opened_is_named_with_the_same_words_everywhere(
    command: str,
    kind: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`FileNotFoundError` without a name, or line 0 of a file that is not there, help no one."""
    (tmp_path / "good.yaml").write_text(CONFIG)
    (tmp_path / "cluster.json").write_text(CLUSTER)
    if kind == "directory":
        directory(tmp_path / "BAD")
    monkeypatch.chdir(tmp_path)
    assert run([*NAMED_BY[command], "BAD"]) in {1, 2}
    told = capsys.readouterr().err
    assert told.startswith(f"error: BAD: {FILES[kind]}"), told
    assert told.count("\n") == 1


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            ("status", "--status-url", "nonsense"),
            "--status-url: 'nonsense' is not a valid HOST:PORT (for example 127.0.0.1:9235)",
        ),
        (
            ("status", "--status-url", "https://127.0.0.1:9235"),
            (
                "--status-url: 'https://127.0.0.1:9235' is not a valid HOST:PORT"
                " (for example 127.0.0.1:9235)"
            ),
        ),
        (
            ("status", "--status-url", "127.0.0.1:1"),
            (
                "127.0.0.1:1: nothing answers: Connection refused (is `reconciler run` running?"
                " --status-url says where)"
            ),
        ),
        (
            ("record", "--out", "out", "--prometheus", "http://127.0.0.1:1"),
            (
                "Prometheus http://127.0.0.1:1: not reached: connection refused"
                " (check the address and the network)"
            ),
        ),
        (
            ("catalogue", "show", "m5.largo"),
            "catalogue show: no type is called m5.largo (did you mean m5.large?)",
        ),
        (
            ("catalogue", "show", "m5.xlarge", "m5.largo", "nope.*"),
            "catalogue show: no type is called m5.largo, nope.* (did you mean m5.large?)",
        ),
        *(
            ((*words, "--out", ""), "--out: is empty (name a folder; the current one is `.`)")
            for words in (
                ("render", "good.yaml"),
                ("import", "--cluster-name", "a"),
                ("ci", "plan", "root"),
                ("demo",),
            )
        ),
        (
            ("sandbox", "interrupt", "x"),
            (
                "http://127.0.0.1:1: nothing answers: connection refused"
                " (is `reconciler sandbox up` running?)"
            ),
        ),
        (
            ("demo", "--out", "cluster.json"),
            "cluster.json: cannot be written: File exists (name another folder with --out)",
        ),
        (
            ("manifest", "good.yaml", "--image", "a b"),
            "--image: 'a b' is not a valid name of an image (REGISTRY/NAME:TAG)",
        ),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, tuple) else "",
)
def test_mistake_is_reported_with_its_place_and_what_to_do(
    command: tuple[str, ...],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Whoever reads one line knows where to look next."""
    (tmp_path / "good.yaml").write_text(CONFIG)
    (tmp_path / "cluster.json").write_text(CLUSTER)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    assert run(command) in {1, 2}
    assert capsys.readouterr().err == f"error: {said}\n"
