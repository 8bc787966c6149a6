"""CSV traces: columns in the spellings of public traces, rows as pods of Jobs."""

import gzip
import io
from datetime import UTC, datetime

import pytest

from reconciler.model.demand import Demand, PodDemand
from reconciler.model.errors import InputError
from reconciler.model.frozen import FrozenMap
from reconciler.records.demand import TraceOptions, read_trace

START = datetime(2026, 3, 1, tzinfo=UTC)
OPTIONS = TraceOptions(start=START, node_selector=FrozenMap({"sector": "batch"}))


def read(text: str) -> Demand:
    """A file's content, read."""
    return read_trace(io.BytesIO(text.encode()), "trace.csv", OPTIONS)


def pods(text: str) -> list[PodDemand]:
    """Its rows."""
    return [line for line in read(text).lines if isinstance(line, PodDemand)]


def test_rows_are_pods_that_end_by_themselves() -> None:
    """The traces that are public have these columns, in any order."""
    first, second = pods(
        "pod,cpu_milli,memory_mib,gpu,creation_s,deletion_s\na,1500,2048,0,60,180\nb,500,1,2,0,9.5"
    )
    assert (first.at, first.ran_seconds) == (START, 9.5)
    assert first.spec.requests == {"cpu": 500, "memory": 2**20, "nvidia.com/gpu": 2, "pods": 1}
    assert first.spec.node_selector == {"sector": "batch"}
    assert second.ran_seconds == 120.0
    assert second.controller is not None
    assert second.controller.kind == "Job"


def test_other_spellings_and_times_are_read() -> None:
    """Cores instead of milli, RFC 3339 instead of seconds, durations instead of ends."""
    (pod,) = pods("\ufeffSubmit_Time,Duration,CPU,Memory\n2026-03-01T02:00:00+02:00,30,0.25,100\n")
    assert (pod.at, pod.ran_seconds) == (START, 30.0)
    assert pod.spec.requests == {"cpu": 250, "memory": 100 * 2**20, "pods": 1}


def test_pod_without_gpus_may_say_nothing_of_them() -> None:
    """Traces leave the cell empty."""
    (pod,) = pods("submit_s,duration,cpu,memory,gpu\n1,2,3,4,\n")
    assert "nvidia.com/gpu" not in pod.spec.requests


def test_compressed_trace_is_read() -> None:
    """Public traces come compressed."""
    body = gzip.compress(b"submit_s,duration,cpu,memory\n1,2,3,4\n")
    assert len(read_trace(io.BytesIO(body), "trace.csv.gz").lines) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1,2\n", "trace.csv:1: no column for submit time, duration or end, cpu or cpu_milli"),
        ("", "trace.csv:1: no column"),
        ("submit_s,duration,cpu,memory\n1,2,3,4\n5,x,7,8\n", "trace.csv:3: duration: 'x' is not"),
        ("submit_s,duration,cpu,memory\n1,2,nan,4\n", "trace.csv:2: cpu: 'nan' is not an amount"),
        ("submit_s,duration,cpu,memory\n1,,3,4\n", "trace.csv:2: duration: '' is not an amount"),
        ("submit_s,duration,cpu,memory\n1,2,,4\n", "trace.csv:2: cpu: '' is not an amount"),
        ("submit_s,duration,cpu,memory\n1,2,3,\n", "trace.csv:2: memory: '' is not an amount"),
        (
            "submit_s,duration,cpu,memory\n1772366400,2,3,4\n",
            "ten years off: give seconds since the trace's beginning (second 0 is 2026-03-01)",
        ),
        ("submit_s,duration,cpu,memory\nsoon,2,3,4\n", "submit_s: 'soon' is neither seconds nor"),
        ("submit_s,duration,cpu,memory\n1e300,2,3,4\n", "submit_s: '1e300' is more than ten years"),
        ("submit_s,duration,cpu,memory\n1,2\n", "trace.csv:2: it has too few columns"),
        ("submit_s,duration,cpu,memory\n1,2,1,5,4\n", "trace.csv:2: it has more columns than the"),
        ("submit_s,end_time,cpu,memory\n9,2,3,4\n", "trace.csv:2: end_time: it is before submit_s"),
        ("submit_s,duration,cpu,memory\r1,2,3,4\r", "trace.csv:1: it has a carriage return within"),
        (
            f"submit_s,duration,cpu,memory,note\n1,2,3,4,{'x' * 200_000}\n",
            "trace.csv:2: it is not a line of CSV: field larger than",
        ),
        (
            "submit_time,Arrival_Time,duration,cpu,memory\n1,2,3,4,5\n",
            "trace.csv:1: several columns for submit time: submit_time, Arrival_Time",
        ),
        (
            "submit_s,duration,cpu,memory,cpu\n1,2,3,4,5\n",
            "several columns for cpu or cpu_milli: cpu, cpu",
        ),
        (
            "submit_s,duration,cpu,cpu_milli,memory\n1,2,3,4,5\n",
            "several columns for cpu or cpu_milli: cpu, cpu_milli",
        ),
        (
            "submit_s,duration,cpu,memory,memory_mib\n1,2,3,4,5\n",
            "several columns for memory: memory, memory_mib",
        ),
        (
            "submit_s,duration,cpu,memory\n20260301,2,3,4\n",
            "trace.csv:2: submit_s: '20260301' may be a date: write 2026-03-01, or 20260301.0",
        ),
        (
            "submit_s,duration,cpu,memory\n9999-12-31T23:59:59,2,3,4\n",
            "trace.csv:2: submit_s: its year is 9999, not from 1970 to 2199",
        ),
        (
            "submit_s,duration,cpu,memory\n0001-01-01T00:00:00+14:00,2,3,4\n",
            "trace.csv:2: submit_s: its year is 1,",
        ),
    ],
)
def test_fault_is_reported_with_its_line_and_column(text: str, said: str) -> None:
    """Of a trace of a million rows, a person needs the one."""
    with pytest.raises(InputError) as caught:
        read(text)
    assert said in str(caught.value)


def test_columns_that_say_different_things_may_be_there_together() -> None:
    """Public traces have a duration and an end, and several names of a job."""
    (pod,) = pods("job,name,submit_s,duration,end_time,cpu,memory\na,b,5,60,99,1,1\n")
    assert pod.ran_seconds == 60.0


def test_empty_cells_at_the_end_of_a_row_are_no_columns() -> None:
    """Spreadsheets write commas up to their widest row; a comma in a number is another thing."""
    (pod,) = pods("submit_s,duration,cpu,memory\n5,60,1,1,, \n")
    assert pod.ran_seconds == 60.0


def test_seconds_of_a_long_trace_are_no_dates() -> None:
    """A trace of a year was refused for one of its rows."""
    first, second = pods("submit_s,duration,cpu,memory\n0,1,1,1\n20260301,1,1,1\n")
    assert (second.at - first.at).total_seconds() == 20_260_301
    (pod,) = pods("submit_s,duration,cpu,memory\n20260301.0,1,1,1\n")
    assert pod.at == second.at
