"""Text from outside in what people read on a forge."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from reconciler.adapters.forge.comments import marked
from reconciler.gitops.markdown import code
from reconciler.gitops.rendering.targets import RenderTarget
from reconciler.gitops.repository.commit_message import request_body
from reconciler.gitops.terraform_plan.finding import Finding
from reconciler.gitops.terraform_plan.pod_impact import PodImpact
from reconciler.gitops.terraform_plan.summary import summary
from reconciler.ports.repository import Commit, CommitId
from tests.unit.gitops.plans import fleet_attributes, plan, resource
from tests.unit.gitops.reports import report, source

QUICK = settings(max_examples=60, deadline=None, derandomize=True)
PARTS = (
    *("@team", "@org/team", "#1", "GH-2", "!3", "~label", "%4", "&5", "$6", "www.evil.example"),
    *("https://evil.example/x", "[a](http://evil)", "![a](http://evil/x.png)", "<img src=x>"),
    *("~~gone~~", "**bold**", "_it_", "`", "``", "```", "|", "\n", "\r", "\u2028", "\x00", "\\"),
    *(
        "-->",
        "--->",
        "<!--",
        "# Title",
        "\n\n## Approved\n",
        "- item",
        "> quote",
        "    code",
        "---",
    ),
    *("/approve", ":rocket:", "&lt;b&gt;", "a@evil.example", "\u202e", "\u200b", " ", "x", "é"),
)
HOSTILE = st.lists(st.sampled_from(PARTS) | st.text(max_size=8), max_size=8).map("".join)
FORGES_FIND = re.compile(
    r"@\w|www\.|GH-\d|(?<!\w)[#!~%$^]\w|&\w|://|\[\w*:|:\w+:|~~|<[\w!/]|(?m:^\s*/\w)", re.IGNORECASE
)
"""What GitHub and GitLab turn into something else in a text that was rendered."""
SHAPES = {"link_open", "image", "html_inline", "html_block", "em_open", "s_open", "fence", "hr"}
PARSER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


def leaves(tokens: list[Token]) -> list[Token]:
    """Every token, those of lines included."""
    found: list[Token] = []
    for token in tokens:
        found += [token, *leaves(token.children or [])]
    return found


def assert_inert(text: str, like: str) -> None:
    """The text has the shape of another one with harmless words, and forges find nothing in it."""
    tokens, harmless = leaves(PARSER.parse(text)), leaves(PARSER.parse(like))
    shape = [token.type for token in tokens if token.type.endswith(("_open", "_block", "hr"))]
    assert shape == [t.type for t in harmless if t.type.endswith(("_open", "_block", "hr"))]
    assert not SHAPES & {token.type for token in tokens}
    for token in tokens:
        if token.type == "text":
            assert FORGES_FIND.search(token.content) is None, token.content


@QUICK
@given(HOSTILE)
def test_text_from_outside_stays_one_piece_of_code(text: str) -> None:
    """A commit's subject must not mention people, fake an approval or load an image."""
    shown = code(text)
    assert_inert(f"## Plan {shown} end", f"## Plan {code('x') if shown else ''} end")
    cells = PARSER.parse(f"| a | b |\n|---|---|\n| {shown} | y |\n")
    assert sum(token.type == "td_open" for token in cells) == 2


@QUICK
@given(HOSTILE)
def test_summary_of_hostile_names_has_the_shape_of_any_other(text: str) -> None:
    """Everything that a summary says of a plan was written by somebody."""

    def written(word: str) -> str:
        before = fleet_attributes(tags={"fleet": f"a{word}", "cluster": "c", "note": word})
        after = {**before, f"a{word}": 1, "tags": {"fleet": f"a{word}", f"k{word}": word}}
        shown = plan(resource("aws_ec2_fleet", ["update"], before, after))
        found = Finding(severity="refused", code="x/y", where=f"a{word}", message=f"a{word}")
        impact = PodImpact(
            fleet=f"a{word}", nodes=1, pods=1, places={f"a{word}": 1}, unplaceable=((word, word),)
        )
        made = replace(report(shown), subject=f"a{word}", findings=(found,), impacts=(impact,))
        return summary(made)

    assert_inert(written(text), written("x"))


@QUICK
@given(HOSTILE, HOSTILE)
def test_body_of_a_pull_request_stays_what_we_wrote(subject: str, path: str) -> None:
    """The commit that it is for is anybody's."""
    commit = Commit(id=CommitId("a" * 40), subject=subject)
    target = RenderTarget(config_path=f"a{path}/sectors.yaml", output_dir="terraform")
    body = request_body(replace(source(), commit=commit, target=target))
    tokens = leaves(PARSER.parse(body))
    assert not SHAPES & {token.type for token in tokens}
    for token in tokens:
        if token.type == "text":
            assert FORGES_FIND.search(token.content) is None, token.content


@QUICK
@given(HOSTILE)
def test_name_of_a_comment_ends_no_html_comment(name: str) -> None:
    """What follows an HTML comment that ended early is shown, or read as more of it."""
    first, _, rest = marked(name, "body", 60_000).partition("\n")
    assert rest == "body"
    inside = first.removeprefix("<!-- fleet-reconciler: ").removesuffix(" -->")
    assert "--" not in inside
    assert not re.search(r"[<>\x00-\x1f]", inside)
    block, *_ = PARSER.parse(f"{first}\nbody")
    assert (block.type, block.content.strip().splitlines()[0]) == ("html_block", first)


@pytest.mark.parametrize("name", ["clusters/analytics/terraform", "plan", "a b.c_d"])
def test_usual_name_of_a_comment_is_as_it_was(name: str) -> None:
    """Comments of an older version must be found again."""
    assert marked(name, "", 100).startswith(f"<!-- fleet-reconciler: {name} -->\n")


@QUICK
@given(HOSTILE, HOSTILE)
def test_two_names_never_share_a_comment(one: str, other: str) -> None:
    """One cluster's plan would replace another's."""
    if one != other:
        assert marked(one, "", 60_000) != marked(other, "", 60_000)
