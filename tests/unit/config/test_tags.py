"""Tags: which keys are ours or AWS's, and how many there may be over the three levels."""

import pytest

from tests.unit.config.documents import found


def test_tags_of_three_levels_count_together_where_the_limit_is_crossed() -> None:
    """EC2 would refuse the fleet's 51st tag in the middle of an apply."""

    def tags(prefix: str, count: int) -> str:
        return "{tags: {" + ", ".join(f"{prefix}{n}: x" for n in range(count)) + "}}"

    def text(top: int, sector: int, fleet: int) -> str:
        return (
            f"terraform: {tags('t', top)}\n"
            "sectors:\n  a:\n    kind: cpu\n"
            f"    terraform: {tags('s', sector)}\n"
            f"    fleets:\n    - size: small\n      terraform: {tags('f', fleet)}\n"
        )

    assert found(text(20, 20, 2)) == []
    path = "sectors.a.fleets[0].terraform.tags"
    assert [(code, where) for code, where, _, _ in found(text(20, 20, 3))] == [("tags/limit", path)]
    assert found(text(20, 23, 1))[0][1] == "sectors.a.terraform.tags"
    assert found(text(43, 1, 1))[0][1] == "terraform.tags"


def test_same_tag_key_on_three_levels_counts_once() -> None:
    """An override must not be taken for one more tag."""
    keys = "{tags: {" + ", ".join(f"k{n}: x" for n in range(42)) + "}}"
    text = (
        f"terraform: {keys}\nsectors:\n  a:\n    kind: cpu\n    terraform: {keys}\n"
        f"    fleets:\n    - size: small\n      terraform: {keys}\n"
    )
    assert found(text) == []


def test_tags_of_a_region_count_with_those_of_the_fleets_there() -> None:
    """EC2 would refuse the fleet's 51st tag, in the further Region alone."""

    def tags(prefix: str, count: int) -> str:
        return "{tags: {" + ", ".join(f"{prefix}{n}: x" for n in range(count)) + "}}"

    def text(region: int, regions: str) -> str:
        top = tags("t", 20)[:-1]
        return (
            f"terraform: {top}, by_region: {{us-east-1: {tags('r', region)}}}}}\n"
            "sectors:\n  a:\n    kind: cpu\n"
            f"    fleets:\n    - size: small\n      regions: [{regions}]\n"
            f"      terraform: {tags('f', 2)}\n"
        )

    assert found(text(20, "us-east-1")) == []
    assert found(text(21, "us-west-2")) == []
    (code, path, *_), *more = found(text(21, "us-east-1"))
    assert (code, path, more) == ("tags/limit", "terraform.by_region.us-east-1.tags", [])


@pytest.mark.parametrize(
    ("stated", "code"),
    [
        ("tags: {Name: x}", "tags/reserved"),
        ("tags: {'aws:x': y}", "tags/reserved"),
        ('tags: {k: "a\\nb"}', "tags/limit"),
        ("node_labels: {sector: x}", "labels/reserved"),
        ("node_labels: {kubernetes.io/role: x}", "labels/reserved"),
        ("node_labels: {good: bad value}", "name/label"),
        ("node_taints: [{key: 'a b', effect: NoSchedule}]", "name/label"),
        ("node_taints: [{key: fleet-reconciler.io/draining, effect: NoSchedule}]", "name/label"),
    ],
)
def test_tags_labels_and_taints_of_a_region_have_the_same_rules(stated: str, code: str) -> None:
    """A config that `validate` accepts would be rendered, and every plan of the Region fail."""
    text = f"terraform: {{by_region: {{us-east-1: {{{stated}}}}}}}\n"
    ((reported, path, *_),) = found(text)
    assert (reported, path[:30]) == (code, "terraform.by_region.us-east-1.")


def test_cluster_name_from_command_line_makes_its_tag_reserved() -> None:
    """A config without a cluster would smuggle the ownership tag past the check."""
    text = "terraform: {tags: {kubernetes.io/cluster/prod: owned}}\n"
    assert found(text) == []
    assert [code for code, *_ in found(text, cluster_name="prod")] == ["tags/reserved"]


@pytest.mark.parametrize("key", ["aws:name", "AWS:name", "Aws:"])
def test_aws_prefix_is_reserved_in_any_case(key: str) -> None:
    """EC2 refuses it in any case, in the middle of an apply."""
    text = f"terraform: {{tags: {{'{key}': x}}}}\n"
    assert [code for code, *_ in found(text)] == ["tags/reserved"]
