"""Places of faults through anchors, merges, flow style and odd keys."""

import pytest

from tests.unit.config.documents import config_of, found


def test_fault_in_merged_mapping_points_at_the_anchor_once() -> None:
    """The key to fix stands at the anchor, and it is one key however often it is merged."""
    text = (
        "scale_in: &base\n"
        "  type_spares: -1\n"
        "sectors:\n"
        "  a:\n"
        "    kind: cpu\n"
        "    scale_in: {<<: *base, max_empty_at_once: 1}\n"
        "    fleets:\n"
        "    - {size: small, scale_in: {<<: *base}}\n"
    )
    assert [(code, line, column) for code, _, line, column in found(text)] == [
        ("config/range", 2, 3)
    ]


def test_explicit_key_wins_over_merged_one() -> None:
    """Fleets that share a template must be able to differ from it."""
    config = config_of(
        "sectors:\n  a:\n    kind: cpu\n    fleets:\n"
        "    - &f {size: small, min_capacity: 2, priority: 1}\n"
        "    - {<<: *f, size: large, min_capacity: 3}\n"
        "    - {<<: [{size: medium, priority: 9}, *f]}\n"
    )
    fleets = config.sectors["a"].fleets
    assert [(f.size, f.min_capacity, f.priority) for f in fleets] == [
        ("small", 2, 1),
        ("large", 3, 1),
        ("medium", 2, 9),
    ]


def test_duplicate_through_alias_points_at_the_alias() -> None:
    """Pointing at the anchor would blame the fleet that is right."""
    text = (
        "sectors:\n  a:\n    kind: cpu\n    fleets:\n"
        "    - &f {size: small}\n"
        "    - *f\n"
    )  # fmt: skip
    assert found(text) == [("sector/duplicate-fleet", "sectors.a.fleets[1]", 6, 7)]


def test_columns_count_characters_not_bytes() -> None:
    """An editor would put the cursor beside the fault in a config with umlauts."""
    text = "terraform: {tags: {größe: ü, Name: x}}\n"
    assert found(text) == [("tags/reserved", "terraform.tags.Name", 1, 30)]


def test_byte_order_mark_and_windows_lines_do_not_move_places() -> None:
    """A file saved on Windows is as good as any."""
    assert found(b"\xef\xbb\xbfcluster: a\r\nbogus: 1\r\n") == [
        ("config/unknown-key", "bogus", 2, 1)
    ]


@pytest.mark.parametrize("key", ["1234", "on", "1.0", "0x10", "true"])
def test_mapping_key_that_looks_like_another_type_keeps_its_text(key: str) -> None:
    """A sector called `on` or `1234` would be looked for under another name."""
    text = f"default_sector: {key}\nsectors: {{{key}: {{kind: cpu, fleets: [{{size: small}}]}}}}\n"
    config = config_of(text)
    assert (list(config.sectors), config.default_sector) == ([key], key)


def test_quoted_and_plain_spelling_of_one_key_are_duplicates() -> None:
    """The second would silently win."""
    assert found('cluster: a\n"cluster": b\n') == [("config/syntax", "cluster", 2, 1)]
