"""Wires `reconciler record`: demand from a live cluster, Prometheus or the loop's own files."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from reconciler.adapters.kubernetes import KubernetesCluster, connect
from reconciler.adapters.prometheus import PrometheusServer, PrometheusSettings
from reconciler.adapters.recording import fetch_days, place_in_s3, s3_client
from reconciler.adapters.recording.file import DemandFile, write_demand_file
from reconciler.adapters.system_clock import SystemClock, stop_on_signals
from reconciler.machine.private_folder import PrivateFolder
from reconciler.model.demand import Demand, DemandLine, PodDemand
from reconciler.model.errors import (
    InputError,
    ObservationError,
    PortError,
    UsageError,
    why_unreadable,
)
from reconciler.model.snapshot import ClusterState
from reconciler.ports.cluster import Cluster
from reconciler.ports.metrics_history import MetricsHistory
from reconciler.records.demand import (
    Anonymiser,
    ObservedDemand,
    changes,
    encode_line,
    folded,
    last_moment,
    read_recorded,
    recorded_until,
    seen_in,
    with_bounds,
)
from reconciler.records.demand.prometheus import PodHistory, queries

LOOK_SECONDS: Final = 10.0
"""The longest time between two looks at a live cluster."""
GATHERED_SECONDS: Final = 1.0
SILENT: Final = timedelta(minutes=1)
"""After how long without a change of a live cluster it is recorded that there was none."""
STEP: Final = timedelta(hours=1)
"""How much time one query to Prometheus covers."""
TOKEN: Final = "RECONCILER_PROMETHEUS_TOKEN"  # noqa: S105 - the name of a variable
DAY_PREFIX: Final = "demand-"
DAY_FILES: Final = f"{DAY_PREFIX}*.jsonl.gz"
_DAY: Final = timedelta(days=1)
OnProgress = Callable[[str, float], None]
"""Called with the progress: what is done, and its share of the whole."""
OnTrouble = Callable[[str], None]
"""Called with what is missing in the recording: while the API server is away, or of days that a
Prometheus server has forgotten; and when the API server answers again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingSummary:
    """Says what a recording holds, and of which time."""

    pods: int
    lines: int
    begin: datetime | None
    end: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveRequest:
    """Says which cluster is watched, and for how long."""

    kubeconfig: str | None = None
    """None: the in-cluster one, else kubectl's own."""
    context: str | None = None
    for_seconds: float | None = None
    """None: until SIGTERM or SIGINT."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrometheusRequest:
    """Says which Prometheus server is asked, and for which time."""

    url: str
    days: float
    end: datetime
    match: str = ""
    """Label matchers of all series."""
    ca_file: Path | None = None
    step: timedelta = STEP

    @property
    def begin(self) -> datetime:
        """Since when it is asked."""
        return self.end - timedelta(days=self.days)


class Tally:
    """Counts the lines that pass, and replaces names in them."""

    def __init__(self, anonymiser: Anonymiser | None) -> None:
        self._anonymiser = anonymiser
        self._pods: set[str] = set()
        self.lines = 0
        self.begin: datetime | None = None
        self.end: datetime | None = None

    def encoded(self, lines: Iterable[DemandLine]) -> Iterator[bytes]:
        """Yield the lines as they are written."""
        for line in lines:
            self.lines += 1
            self.begin = min(self.begin or line.at, line.at)
            last = last_moment(line)
            self.end = max(self.end or last, last)
            if isinstance(line, PodDemand):
                self._pods.add(line.id)
            yield encode_line(self._anonymiser.line(line) if self._anonymiser else line)

    def recorded(self) -> RecordingSummary:
        """Return the result."""
        return RecordingSummary(
            pods=len(self._pods), lines=self.lines, begin=self.begin, end=self.end
        )


def record_live(
    request: LiveRequest,
    out: Path,
    anonymiser: Anonymiser | None,
    on_progress: OnProgress,
    on_trouble: OnTrouble,
) -> RecordingSummary:
    """Record what a cluster runs and what changes, until the time is over or a signal comes.

    Raises:
        PortError: The API server does not answer.
        InputError: The file cannot be written.
    """
    clock = SystemClock()
    transport = connect(request.kubeconfig, request.context)
    with (
        closing(KubernetesCluster(transport)) as cluster,
        stop_on_signals(clock.stop, [cluster.wake]),
    ):
        tally = Tally(anonymiser)
        seconds = request.for_seconds
        return record_cluster(cluster, clock, seconds, out, tally, on_progress, on_trouble)


def record_cluster(
    cluster: Cluster,
    clock: SystemClock,
    for_seconds: float | None,
    out: Path,
    tally: Tally,
    on_progress: OnProgress,
    on_trouble: OnTrouble = lambda _: None,
) -> RecordingSummary:
    """Record what comes, changes and ends in a cluster until it is time, or the clock is stopped.

    Objects that existed at the start are not recorded as new. Outages of the API server are
    reported and survived; changes during one get the time of the next observation.

    Raises:
        ReconcilerError: The API server did not answer at first. A file that is there stays then.
        InputError: The file cannot be written.
    """
    begun, looks = clock.monotonic_seconds(), _Looks(clock.now())
    state: ClusterState | None = cluster.observe()
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with DemandFile(out) as file:
            while True:
                found = looks.until_last() if state is None else looks.next(state, clock.now())
                for line in tally.encoded(found):
                    file.append(line)
                file.flush()
                spent = clock.monotonic_seconds() - begun
                on_progress(f"{tally.lines:,} lines", spent / for_seconds if for_seconds else 0.0)
                left = LOOK_SECONDS if for_seconds is None else for_seconds - spent
                if clock.stop.is_set() or left <= 0:
                    for line in tally.encoded([recorded_until(looks.last_at)]):
                        file.append(line)
                    return tally.recorded()
                cluster.wait_for_change(min(left, LOOK_SECONDS))
                # A burst of events is one look, as each look compares all pods.
                clock.wait_seconds(min(GATHERED_SECONDS, left))
                state = _observe(cluster, on_trouble, was_away=state is None)
    except OSError as error:
        raise InputError(str(out), f"cannot be written: {error.strerror}") from error


class _Looks:
    """What successive looks at a cluster add to its recording.

    Args:
        first: When it began.
    """

    def __init__(self, first: datetime) -> None:
        self._before = ObservedDemand()
        self._first = self._written_at = self.last_at = first
        """`last_at`: until when is known what happened."""

    def next(self, state: ClusterState, at: datetime) -> Sequence[DemandLine]:
        """Return the changes since the last look, or now and then that there was none."""
        now = seen_in(state, None, at, {}, self._before)
        found: list[DemandLine] = list(
            changes(self._before, now, at, max(at - self._first, timedelta(0)))
        )
        if not found and at - self._written_at >= SILENT:
            found = [recorded_until(at)]
        self._before, self.last_at = now, at
        self._written_at = at if found else self._written_at
        return found

    def until_last(self) -> Sequence[DemandLine]:
        """Return until when is known what happened, if that is not written yet."""
        if self._written_at == self.last_at:
            return []
        self._written_at = self.last_at
        return [recorded_until(self.last_at)]


def _observe(cluster: Cluster, on_trouble: OnTrouble, *, was_away: bool) -> ClusterState | None:
    """Return the cluster's state; None while the API server does not answer."""
    try:
        state = cluster.observe()
    except (ObservationError, PortError) as error:
        if not was_away:
            on_trouble(f"{error}; the recording continues when the API server answers again")
        return None
    if was_away:
        on_trouble("the API server answers again")
    return state


def record_prometheus(
    request: PrometheusRequest,
    out: Path,
    anonymiser: Anonymiser | None,
    on_progress: OnProgress,
    on_trouble: OnTrouble,
) -> RecordingSummary:
    """Record what kube-state-metrics reported to a Prometheus server, an hour per query.

    The recording begins where the server's samples do, if that is later than asked for.

    Raises:
        PortError: The server does not answer, or refuses a query.
        UsageError: It has no pod.
        InputError: There are too many pods, or the file cannot be written.
    """
    settings = PrometheusSettings(url=request.url, token=_token, ca_file=request.ca_file)
    history = pods_of(PrometheusServer(settings), request, on_progress)
    if not len(history):
        what = f"knows no pod of the {request.days:g} days before {request.end:%Y-%m-%d %H:%M}"
        hint = "kube_pod_created must be kept there: check --match, --end and the scrape of"
        raise UsageError("--prometheus", what, f"{hint} kube-state-metrics")
    begin = max(request.begin, history.forgotten_until or request.begin)
    if begin > request.begin:
        since = f"{begin.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        on_trouble(f"{request.url}: knows of no pod before {since}: the demand begins then")
    tally = Tally(anonymiser)
    lines = with_bounds(history.lines(begin, request.end), begin, request.end)
    write_demand_file(out, tally.encoded(lines))
    return tally.recorded()


def pods_of(
    server: MetricsHistory, request: PrometheusRequest, on_progress: OnProgress
) -> PodHistory:
    """Query every step and collect the pods; raises as `record_prometheus`."""
    history = PodHistory(request.url)
    at = begin = request.begin
    while at < request.end:
        step = min(request.step, request.end - at)
        at += step
        asked = queries(request.match, step)
        answers = {name: server.query(query, at) for name, query in asked.items()}
        history.add(answers, at - step)
        on_progress(f"{len(history):,} pods", (at - begin) / (request.end - begin))
    return history


def record_files(
    recording: str, days: float | None, out: Path, anonymiser: Anonymiser | None
) -> RecordingSummary:
    """Merge the days that the capacity loop has recorded into one file, each pod with its end.

    Raises:
        UsageError: There is no recording.
        InputError: A file cannot be read or written.
        PortError: S3 does not answer, or refuses.
    """
    tally = Tally(anonymiser)
    demand = recorded_demand(recording, days)
    write_demand_file(
        out, tally.encoded(with_bounds(demand.lines, demand.recorded_from, demand.end))
    )
    return tally.recorded()


def recorded_demand(recording: str, days: float | None) -> Demand:
    """Return what the capacity loop has recorded in a directory or a bucket of S3.

    Args:
        recording: The directory, or `s3://bucket/prefix`.
        days: How many of the last days; None: all.

    Raises:
        UsageError: There is no recording.
        InputError: A file cannot be read.
        PortError: S3 does not answer, or refuses.
    """
    now = datetime.now(UTC)  # noqa: TID251 - what a person asks
    oldest = "" if days is None else f"{now - timedelta(days=days):%Y-%m-%d}"
    place = place_in_s3(recording)
    if place is None:
        return demand_of_days(_files_of_days(Path(recording), oldest, now), recording)
    with PrivateFolder("recording") as folder:
        fetch_days(place, s3_client(), oldest, folder)
        return demand_of_days(_files_of_days(folder, oldest, now), recording)


def _files_of_days(directory: Path, oldest: str, now: datetime) -> list[Path]:
    """Return the files of days from one on, without days to come: a clock was wrong then.

    Raises:
        UsageError: There are only older ones.
    """
    after = f"{DAY_PREFIX}{now + 2 * _DAY:%Y-%m-%d}"
    files = [file for file in sorted(directory.glob(DAY_FILES)) if file.name < after]
    found = [file for file in files if file.name >= f"{DAY_PREFIX}{oldest}"]
    if files and not found:
        newest = files[-1].name.removeprefix(DAY_PREFIX)[: len("2026-01-31")]
        what = f"the newest recorded day in {directory} is {newest}"
        raise UsageError("--days", what, "ask for more days")
    return found


def demand_of_days(files: Sequence[Path], directory: str) -> Demand:
    """Read the files of several days as one demand, each pod once, with its end.

    What was before the first day, or before its recording began, is no part of it.

    Raises:
        UsageError: There are none in the directory.
        InputError: One cannot be read.
    """
    if not files:
        raise UsageError("--recording", f"{directory} holds no {DAY_FILES}", "name the directory")
    lines: list[DemandLine] = []
    for file in files:
        try:
            with file.open("rb") as stream:
                lines += read_recorded(stream, str(file))
        except OSError as error:
            raise InputError(str(file), why_unreadable(error)) from error
    return replace(folded(lines, _day_of(files[0])), name=directory)


def _day_of(file: Path) -> datetime:
    """Return when the day of a recorded file begins; for a name without one, before all days."""
    try:
        day = datetime.fromisoformat(file.name.removeprefix(DAY_PREFIX)[: len("2026-01-31")])
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)
    return day.replace(tzinfo=UTC)


def _token() -> str:
    """Return the bearer token, from the environment or a file that it names, stripped.

    Raises:
        InputError: The file cannot be read, or the token cannot be sent in a header.
    """
    variables = os.environ  # noqa: TID251 - credentials come from nowhere else
    file = variables.get(f"{TOKEN}_FILE", "")
    try:
        given = Path(file).read_text("utf-8", "replace") if file else variables.get(TOKEN, "")
    except OSError as error:
        raise InputError(file, why_unreadable(error), f"{TOKEN}_FILE names it") from error
    token = given.strip()
    if not (token.isascii() and token.isprintable()):
        what = "holds more than a token"
        raise InputError(file or TOKEN, what, "one line of ASCII, nothing else")
    return token
