"""`reconciler record`: from Prometheus over HTTP, and from what the loop recorded."""

import gzip
import io
import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import zstandard

from reconciler.cli.main import run
from reconciler.model.demand import Demand, DemandLine, PodDemand, PodEnd
from reconciler.records.demand import encode_line, read_demand, recorded_from, recorded_until
from tests.builders import make_spec
from tests.prometheus_server import TOKEN, Prometheus, ToldPod, prometheus_server

END = datetime(2026, 3, 8, 12, tzinfo=UTC)
CONFIG = """
cluster: sim
regions: [us-east-1]
default_sector: batch
sectors: {batch: {kind: cpu, fleets: [{size: small}]}}
"""


def before(hours: float) -> float:
    """So long before the end, as Prometheus has it."""
    return (END - timedelta(hours=hours)).timestamp()


@pytest.fixture
def prometheus(monkeypatch: pytest.MonkeyPatch) -> Iterator[Prometheus]:
    """A server with pods of two days, whose token is in the environment."""
    monkeypatch.setenv("RECONCILER_PROMETHEUS_TOKEN", TOKEN)
    batch = {"sector": "batch"}
    pods = [
        ToldPod(uid="service", created=before(40), gone=before(-1), selector=batch),
        ToldPod(uid="deleted", created=before(30), gone=before(20), selector=batch),
        ToldPod(
            uid="job",
            created=before(10),
            gone=before(9),
            completed=before(9.5),
            owner=("Job", "build"),
            selector=batch,
        ),
        ToldPod(uid="agent", created=before(40), gone=before(-1), owner=("DaemonSet", "agent")),
        ToldPod(uid="older", created=before(100), gone=before(90)),
    ]
    with prometheus_server(pods) as server:
        yield server


def record(server: Prometheus, out: Path, *more: str) -> int:
    """Two days of it."""
    words = ["--prometheus", server.url, "--days", "2", "--end", "2026-03-08T12:00:00Z"]
    return run(["record", *words, "--out", str(out), "-o", "json", *more])


def demand(path: Path) -> Demand:
    """What a simulation reads."""
    with path.open("rb") as stream:
        return read_demand(stream, str(path))


def test_two_days_of_prometheus_are_simulated(
    prometheus: Prometheus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever has no recording yet has metrics of the last weeks."""
    out = tmp_path / "demand.jsonl.gz"
    assert record(prometheus, out) == 0
    assert json.loads(capsys.readouterr().out)["pods"] == 3
    pods = {line.id: line for line in demand(out).lines if isinstance(line, PodDemand)}
    assert set(pods) == {"service", "deleted", "job"}
    assert pods["deleted"].until == END - timedelta(hours=20)
    assert pods["job"].ran_seconds == pytest.approx(1790)
    assert pods["service"].spec.requests == {"cpu": 1000, "memory": 2**30, "pods": 1}
    (tmp_path / "sectors.yaml").write_text(CONFIG)
    words = ["--config", f"{tmp_path}/sectors.yaml", "--demand", str(out)]
    assert run(["simulate", *words, "--out", f"{tmp_path}/report", "-o", "json"]) == 0
    (simulated,) = json.loads(capsys.readouterr().out)["runs"]
    assert simulated["pods"] == 3
    assert out.stat().st_mode & 0o077 == 0


def test_steady_services_of_prometheus_last_until_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two days of pods that never changed were simulated for one second."""
    monkeypatch.setenv("RECONCILER_PROMETHEUS_TOKEN", TOKEN)
    with prometheus_server([ToldPod(uid="a", created=before(100), gone=before(-1))]) as server:
        assert record(server, tmp_path / "d.jsonl") == 0
    found = demand(tmp_path / "d.jsonl")
    assert (found.begin, found.end) == (END - timedelta(days=2), END)


def test_days_that_prometheus_has_forgotten_are_reported_and_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They had the services that run today, and none of the Jobs: a month without batch work."""
    monkeypatch.setenv("RECONCILER_PROMETHEUS_TOKEN", TOKEN)
    pods = [ToldPod(uid="a", created=before(100), gone=before(-1))]
    with prometheus_server(pods) as server:
        server.keeps_from = before(20)
        assert record(server, tmp_path / "d.jsonl") == 0
    found = demand(tmp_path / "d.jsonl")
    assert (found.begin, found.end) == (END - timedelta(hours=20), END)
    assert found.lines[0].at == found.begin
    said = capsys.readouterr().err
    assert f"{server.url}: knows of no pod before 2026-03-07 16:00 UTC" in said


def test_days_that_are_put_together_last_until_the_end_of_the_last(tmp_path: Path) -> None:
    """The days after the last change were cut off, and so was what they cost."""
    pod = PodDemand(at=END, id="long", spec=make_spec("1"))
    days: dict[int, list[DemandLine]] = {
        8: [pod, recorded_until(END + timedelta(hours=11))],
        9: [pod, recorded_until(END + timedelta(hours=35))],
    }
    for day, lines in days.items():
        content = gzip.compress(b"".join(map(encode_line, lines)))
        (tmp_path / f"demand-2026-03-{day:02}.jsonl.gz").write_bytes(content)
    out = tmp_path / "all.jsonl"
    assert run(["record", "--recording", str(tmp_path), "--anonymise", "--out", str(out)]) == 0
    found = demand(out)
    assert (len(found.lines), found.begin, found.end) == (1, END, END + timedelta(hours=35))
    together = b"".join(f.read_bytes() for f in sorted(tmp_path.glob("*.gz"), reverse=True))
    (tmp_path / "cat.jsonl.gz").write_bytes(together)
    assert demand(tmp_path / "cat.jsonl.gz").end == END + timedelta(hours=35)


def test_compressed_as_the_name_says(prometheus: Prometheus, tmp_path: Path) -> None:
    """A file of weeks is large."""
    plain, packed, zstd = (tmp_path / f"d.jsonl{end}" for end in ("", ".gz", ".zst"))
    for out in (plain, packed, zstd):
        assert record(prometheus, out) == 0
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    reader = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(zstd.read_bytes()))
    assert reader.read() == plain.read_bytes()


def test_anonymised_recording_names_nothing(prometheus: Prometheus, tmp_path: Path) -> None:
    """A demand that is sent to somebody would tell what a company runs."""
    out = tmp_path / "demand.jsonl"
    assert record(prometheus, out, "--anonymise") == 0
    text = out.read_text()
    assert not [word for word in ("service", "team", "build", "web-") if word in text]
    assert '"sector":"batch"' in text


def test_token_is_never_shown(
    prometheus: Prometheus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A server that repeats the token would put it into the log of a pipeline."""
    prometheus.status = 422
    assert record(prometheus, tmp_path / "d") == 1
    said = capsys.readouterr().err
    assert "load too many samples" in said
    assert TOKEN not in said
    assert not (tmp_path / "d").exists()


def test_refused_token_names_the_variable(
    prometheus: Prometheus,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The way out is in the message."""
    monkeypatch.setenv("RECONCILER_PROMETHEUS_TOKEN", "another")
    assert record(prometheus, tmp_path / "d") == 1
    assert "RECONCILER_PROMETHEUS_TOKEN" in capsys.readouterr().err
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n")
    monkeypatch.setenv("RECONCILER_PROMETHEUS_TOKEN_FILE", str(file))
    assert record(prometheus, tmp_path / "d") == 0


@pytest.mark.parametrize(("given", "code"), [(f"{TOKEN}\n", 0), (f"{TOKEN}\n{TOKEN}", 1)])
def test_token_with_a_line_end_is_never_shown(
    prometheus: Prometheus,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    given: str,
    code: int,
) -> None:
    """Secrets often end with one; the library's complaint about the header quotes the token."""
    monkeypatch.setenv("RECONCILER_PROMETHEUS_TOKEN", given)
    assert record(prometheus, tmp_path / "d") == code
    assert TOKEN not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--prometheus", "ftp://x"], "is not an http:// or https:// URL"),
        (["--prometheus", "http://127.0.0.1:1", "--days", "0.02"], "not reached"),
        (["--prometheus", "http://x", "--recording", "y"], "cannot be combined"),
        (["--prometheus", "http://x", "--for", "1h"], "is only for watching"),
        (["--recording", "absent"], "holds no demand-*.jsonl.gz"),
        (["--match", "a=b"], "needs --prometheus"),
        (["--days", "3"], "a live cluster has no recorded past"),
        (["--for", "soon"], "is not a duration"),
        (["--prometheus", "http://x", "--end", "now"], "is not a valid RFC 3339 time"),
        (["--prometheus", "http://x", "--end", "0001-01-01T00:00:00Z"], "its year is 1, not from"),
    ],
)
def test_wrong_options_are_reported_in_one_line(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Options of another source would be passed over silently."""
    assert run(["record", "--out", str(tmp_path / "d"), *words]) in {1, 2}
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1
    assert not (tmp_path / "d").exists()


def test_server_without_pods_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    """An empty file would simulate a cluster that costs nothing."""
    monkeypatch.setenv("RECONCILER_PROMETHEUS_TOKEN", TOKEN)
    with prometheus_server([]) as server:
        assert record(server, tmp_path / "d") == 2
    assert "knows no pod" in capsys.readouterr().err


def test_days_of_the_loops_recording_become_one_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pod of three days is in three files, and its end in the last."""
    pod = PodDemand(at=END, id="long", spec=make_spec("1"), namespace="team")
    end = PodEnd(at=END + timedelta(days=2), id="long")
    days: dict[int, list[DemandLine]] = {8: [pod], 9: [pod], 10: [pod, end]}
    for day, lines in days.items():
        content = gzip.compress(b"".join(map(encode_line, lines)))
        (tmp_path / f"demand-2026-03-{day:02}.jsonl.gz").write_bytes(content)
    out = tmp_path / "all.jsonl"
    assert run(["record", "--recording", str(tmp_path), "--out", str(out), "-o", "table"]) == 0
    assert "1 pods in 1 lines" in capsys.readouterr().out
    (line,) = demand(out).lines
    assert isinstance(line, PodDemand)
    assert line.until == END + timedelta(days=2)


def test_file_in_the_way_of_the_folder_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The clean-up after it failed too, and its words hid the cause."""
    (tmp_path / "demand-2026-03-08.jsonl.gz").write_bytes(gzip.compress(b""))
    (tmp_path / "taken").write_text("a file")
    out = tmp_path / "taken" / "all.jsonl"
    assert run(["record", "--recording", str(tmp_path), "--out", str(out)]) == 1
    assert f"{out}: cannot be written: File exists" in capsys.readouterr().err


def test_torn_day_without_a_whole_part_counts_as_far_as_it_goes(tmp_path: Path) -> None:
    """The loop was killed in the first minutes of a day: the days before it count all the same."""
    words = recorded(tmp_path)
    pods = [PodDemand(at=END, id=f"{n}", spec=make_spec(str(n))) for n in range(1, 400)]
    torn = gzip.compress(b"".join(map(encode_line, pods)), mtime=0)
    day, out = tmp_path / "demand-2026-03-09.jsonl.gz", tmp_path / "all.jsonl"
    for kept, least in ((12, 1), (len(torn) - 9, 300)):
        day.write_bytes(torn[:kept])
        assert run([*words, "--out", str(out)]) == 0
        assert len(demand(out).lines) >= least
    day.write_bytes(b"no gzip")
    assert run([*words, "--out", str(out)]) == 1


def recorded(directory: Path) -> list[str]:
    """A recording of one pod, as words of the command line."""
    pod = PodDemand(at=END, id="a", spec=make_spec("1"))
    content = gzip.compress(encode_line(pod), mtime=0)
    (directory / "demand-2026-03-08.jsonl.gz").write_bytes(content)
    return ["record", "--recording", str(directory)]


def test_pipe_and_device_are_written_into_and_stay(tmp_path: Path) -> None:
    """As root `--out /dev/null` took the machine its /dev/null."""
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for out in (pipe, link):
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        assert run([*recorded(tmp_path), "--out", str(out)]) == 0
        assert b'"id":"a"' in os.read(reader, 1 << 16)
        os.close(reader)
    assert pipe.is_fifo()
    assert link.is_symlink()


def test_link_stays_and_the_file_behind_it_is_replaced(tmp_path: Path) -> None:
    """A link to the newest recording is not the recording."""
    link = tmp_path / "link"
    link.symlink_to("there.jsonl")
    assert run([*recorded(tmp_path), "--out", str(link)]) == 0
    assert link.is_symlink()
    assert len(demand(tmp_path / "there.jsonl").lines) == 1


@pytest.mark.parametrize("out", ["", "/"])
def test_name_of_no_file_is_refused(
    out: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not after all days were read, and not as an unexpected error."""
    assert run([*recorded(tmp_path), "--out", out]) == 2
    assert "is not a valid name of a file" in capsys.readouterr().err


def test_first_day_begins_when_its_recording_began(tmp_path: Path) -> None:
    """A loop that was started at noon had recorded since midnight, as its pods were older."""
    day = END.replace(hour=0)
    pod = PodDemand(at=day - timedelta(days=3), id="job", spec=make_spec("1"))
    noon, ended = day + timedelta(hours=12), day + timedelta(hours=30)
    days: dict[int, list[DemandLine]] = {
        8: [recorded_from(noon), pod, recorded_until(day + timedelta(hours=23))],
        9: [recorded_from(day + timedelta(hours=24)), pod,
            PodEnd(at=ended, id="job", ran_seconds=90 * 3_600.0)],
    }  # fmt: skip
    for number, lines in days.items():
        content = gzip.compress(b"".join(map(encode_line, lines)))
        (tmp_path / f"demand-2026-03-{number:02}.jsonl.gz").write_bytes(content)
    out = tmp_path / "all.jsonl"
    assert run(["record", "--recording", str(tmp_path), "--out", str(out)]) == 0
    (line,) = demand(out).lines
    assert isinstance(line, PodDemand)
    assert (line.at, line.ran_seconds) == (noon, 18 * 3_600)


def test_day_that_is_still_to_come_is_left_out(tmp_path: Path) -> None:
    """One cycle of a clock that was wrong made the simulation decades long."""
    words = recorded(tmp_path)
    content = gzip.compress(encode_line(recorded_until(END.replace(year=2150))))
    (tmp_path / "demand-2150-03-08.jsonl.gz").write_bytes(content)
    out = tmp_path / "all.jsonl"
    assert run([*words, "--out", str(out)]) == 0
    assert demand(out).end == END


def test_days_that_are_all_older_than_asked_for_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It said that the directory holds no recording."""
    words = recorded(tmp_path)
    for file in tmp_path.glob("demand-*"):
        file.rename(tmp_path / "demand-2020-03-08.jsonl.gz")
    assert run([*words, "--days", "7", "--out", str(tmp_path / "all.jsonl")]) == 2
    said = f"--days: the newest recorded day in {tmp_path} is 2020-03-08"
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("kept", [-1, -9, 60, 12])
def test_torn_part_of_a_day_costs_what_is_in_it(tmp_path: Path, kept: int) -> None:
    """A loop that was killed while it wrote would have made all recorded days unreadable."""
    pods = [PodDemand(at=END, id=name, spec=make_spec("1")) for name in ("a", "lost", "b", "c")]
    first, torn, *rest = (gzip.compress(encode_line(pod), mtime=0) for pod in pods)
    day = tmp_path / "demand-2026-03-08.jsonl.gz"
    out = tmp_path / "all.jsonl"
    for content in (b"".join([first, torn[:kept], *rest]), b"".join([first, *rest, torn[:kept]])):
        day.write_bytes(content)
        assert run(["record", "--recording", str(tmp_path), "--out", str(out)]) == 0
        found = [line.id for line in demand(out).lines if isinstance(line, PodDemand)]
        assert found == ["a", "b", "c"]


def test_what_was_before_the_first_recorded_day_is_no_part_of_it(tmp_path: Path) -> None:
    """A pod that is a year old would make the simulation of a day a year long."""
    day = END.replace(hour=0)
    long_ago = day - timedelta(days=400)
    lines: list[DemandLine] = [
        PodDemand(at=long_ago, id="service", spec=make_spec("1")),
        PodDemand(at=day - timedelta(hours=1), id="job", spec=make_spec("1"), ran_seconds=5_400.0),
        PodDemand(at=long_ago, id="ended", spec=make_spec("1"), ran_seconds=60.0),
        PodDemand(at=END, id="new", spec=make_spec("1")),
    ]
    content = gzip.compress(b"".join(map(encode_line, lines)))
    (tmp_path / "demand-2026-03-08.jsonl.gz").write_bytes(content)
    out = tmp_path / "all.jsonl"
    assert run(["record", "--recording", str(tmp_path), "--out", str(out)]) == 0
    pods = [line for line in demand(out).lines if isinstance(line, PodDemand)]
    assert {pod.id: (pod.at, pod.ran_seconds) for pod in pods} == {
        "service": (day, None),
        "job": (day, 1_800.0),
        "new": (END, None),
    }
