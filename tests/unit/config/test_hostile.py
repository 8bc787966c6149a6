"""Hostile and damaged files: refused in one go, quickly, never with a traceback."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.config.json_schema import sections
from reconciler.config.loader import load_config, parse_config, read_config
from reconciler.model.errors import ConfigError
from tests.unit.config.documents import COMPLETE, found, problems_of

CALMLY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""The machine may be busy; bombs have a time limit of their own below."""
KEYS = sorted({f.alias or n for m in sections() for n, f in m.model_fields.items()})
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(["1Gi", "8:00", "mon", "small", "memory", "-1", ".nan", "<<", "*a", "cost"]),
)
NAMES = st.one_of(st.sampled_from([*KEYS, "capacity_min", "small", "<<"]), st.text(max_size=10))
TREES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda children: st.one_of(
        st.lists(children, max_size=4), st.dictionaries(NAMES, children, max_size=5)
    ),
    max_leaves=30,
)


@CALMLY
@given(st.dictionaries(st.sampled_from(KEYS), TREES, max_size=6))
def test_any_tree_is_a_config_or_a_list_of_faults(tree: dict[str, Any]) -> None:
    """A traceback in CI says nothing about which line to fix."""
    for problem in problems_of(yaml.safe_dump(tree, allow_unicode=True)):
        assert problem.line >= 1
        assert problem.column >= 1
        assert "\n" not in problem.message


@CALMLY
@given(st.text(max_size=200))
def test_any_text_is_a_config_or_a_list_of_faults(text: str) -> None:
    """Somebody will commit the wrong file."""
    problems_of(text)


@CALMLY
@given(st.binary(max_size=200))
def test_any_bytes_are_a_config_or_a_list_of_faults(raw: bytes) -> None:
    """A ConfigMap may hold anything."""
    problems_of(raw)


@CALMLY
@given(st.data())
def test_any_damage_to_a_good_config_is_survived(data: st.DataObject) -> None:
    """A half-written file must read as a fault, not crash the loop."""
    position = data.draw(st.integers(0, len(COMPLETE)))
    damage = data.draw(st.text(max_size=4))
    problems_of(COMPLETE[:position] + damage + COMPLETE[position + len(damage) :])


def billion_laughs() -> str:
    """Nine to the power of nine values in ten lines."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    return "\n".join(lines) + "\n"


def merge_bomb() -> str:
    """A large mapping merged into many."""
    base = ", ".join(f"k{n}: 1" for n in range(2000))
    return f"a: &a {{{base}}}\n" + "".join(f"b{n}: {{<<: [*a, *a]}}\n" for n in range(5000))


def tower_of_aliases() -> str:
    """Aliases in lists in aliases: few values, 3,000 levels of them."""
    lines = [f"a0: &a0 {'[' * 50}x{']' * 50}"]
    lines += [f"a{n}: &a{n} {'[' * 50}*a{n - 1}{']' * 50}" for n in range(1, 60)]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    "text",
    [
        billion_laughs(),
        tower_of_aliases(),
        merge_bomb(),
        "[" * 200_000,
        "{a: " * 100_000,
        "".join(f"{' ' * n}a:\n" for n in range(1000)),
        "a: &a b\n" + "".join(f"b{n}: *a\n" for n in range(20_000)),
        "a: " + "x" * 2_000_000,
    ],
    ids=["laughs", "tower", "merges", "sequences", "mappings", "block", "aliases", "large"],
)
def test_bomb_is_refused_at_once(text: str) -> None:
    """One commit must not take the second loop down for minutes."""
    began = time.process_time()
    faults = found(text)
    assert [code for code, *_ in faults] == ["config/syntax"]
    assert time.process_time() - began < 20


@pytest.mark.parametrize("size", [1024 * 1024 - 1, 1024 * 1024])
def test_file_up_to_one_mebibyte_is_read(size: int) -> None:
    """The limit is 1 MiB, not a byte less."""
    text = b"cluster: a\n"
    assert found(text + b"#" * (size - len(text))) == []


def test_file_over_one_mebibyte_is_refused(tmp_path: Path) -> None:
    """A log file mounted by mistake must not be parsed."""
    file = tmp_path / "large.yaml"
    file.write_bytes(b"#" * (1024 * 1024 + 1))
    with pytest.raises(ConfigError, match="larger than 1 MiB"):
        load_config(file)


@pytest.mark.parametrize(
    ("raw", "place"),
    [
        (b"cluster: \xe9t\xe9\n", (1, 10)),
        (b"cluster: a\nregions: []\xff\n", (2, 12)),
        (b"\x7fELF\x02\x01\x01\x00\x00", (1, 1)),
        ("cluster: a\n".encode("utf-16"), (1, 1)),
        (b"cluster: a\x00b\n", (1, 11)),
        (b"cluster: \x1b[31m\n", (1, 10)),
    ],
)
def test_file_that_is_no_utf8_text_is_refused_at_its_place(
    raw: bytes, place: tuple[int, int]
) -> None:
    """Text in another encoding must not arrive garbled in tags."""
    assert [(code, line, column) for code, _, line, column in found(raw)] == [
        ("config/syntax", *place)
    ]


def test_missing_file_directory_and_unreadable_name_are_config_errors(tmp_path: Path) -> None:
    """The process ends with exit code 2 and one line, whatever is mounted there."""
    for path, what in [
        (tmp_path / "none.yaml", "no such file"),
        (tmp_path, "is a directory"),
        (tmp_path / ("x" * 5000), "File name too long"),
        (tmp_path / "a\x00b", "cannot be read"),
    ]:
        with pytest.raises(ConfigError, match=what) as caught:
            load_config(path)
        assert caught.value.exit_code == 2


def test_long_values_are_cut_and_made_printable_in_messages() -> None:
    """A message with a megabyte or an escape sequence would wreck the terminal."""
    for value in ("9" * 100_000, "x" * 100_000, '"\\e[31m\\n"'):
        for problem in problems_of(
            f"expander: {value}\nsleep_interval: {value}\ncluster: {value}\n"
        ):
            assert len(problem.message) < 300
            assert problem.message.isprintable()


def test_empty_mapping_is_a_config_of_defaults() -> None:
    """Without sectors every group that is found is managed with the defaults."""
    config = parse_config("{}\n")
    assert config.sectors == {}
    assert config.scale_in.idle_threshold_seconds == 600


@pytest.mark.parametrize(
    "url",
    [
        "http://h:x/",
        "http://h:99999",
        "http://",
        "http://u:s3cr3tpw@h:4318",
        "https://s3cr3tpw@h",
        "https://h/?token=s3cr3tpw",
        "http://[::1",
        "http://h h",
        "ftp://h",
    ],
)
@pytest.mark.parametrize(
    "key",
    ["tracing: {endpoint: URL}", "terraform: {backend: {bucket: states, key: k, endpoint: URL}}"],
)
def test_address_that_leads_nowhere_or_carries_a_secret_is_refused_unseen(
    key: str, url: str
) -> None:
    """The exporter would fail in its thread; a config is no place for a secret."""
    text = f"cluster: a\n{key.replace('URL', json.dumps(url))}\n"
    messages = [problem.message for problem in read_config(text).problems]
    assert any("must be a URL such as https://HOST:PORT" in message for message in messages)
    assert "s3cr3tpw" not in str(messages)


@pytest.mark.parametrize("url", ["http://otel.x:4318", "https://h/base/", "http://[::1]:4318", ""])
def test_address_of_a_collector_is_taken(url: str) -> None:
    """Collectors have ports, paths and IPv6 addresses."""
    config = read_config(f"cluster: a\ntracing: {{endpoint: {json.dumps(url)}}}\n").config
    assert config is not None
    assert config.tracing.endpoint == url


def test_pointer_of_git_lfs_is_called_by_its_name() -> None:
    """The repository has it in place of the config, and nobody sees that in an editor."""
    pointer = (
        "version https://git-lfs.github.com/spec/v1\n"
        "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
    )
    (problem,) = problems_of(pointer)
    assert "Git LFS" in problem.message
