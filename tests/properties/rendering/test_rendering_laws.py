"""Random and hostile configs: rendered alike everywhere, refused or literal, never injected."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from reconciler.config.loader import parse_config
from reconciler.gitops.rendering.render import TFVARS, render
from reconciler.gitops.rendering.root_module import root_module_of
from reconciler.model.errors import ConfigError
from tests.full_proofs import rounds
from tests.properties.rendering.configs import Document, drawn
from tests.properties.rendering.hcl import STRING, read_hcl, skeleton
from tests.properties.rendering.hostile import BASE, hostile_documents, places_of

pytestmark = pytest.mark.timeout(1800)

RENDERING = """
import hashlib, json, sys
from reconciler.config.loader import parse_config
from reconciler.gitops.rendering.render import render
from reconciler.gitops.rendering.root_module import root_module_of
digests = []
for text in json.load(sys.stdin):
    root = root_module_of(parse_config(text.encode(), name="sectors.yaml"))
    digest = hashlib.sha256()
    for file in render(root):
        digest.update(file.path.encode() + b"\\0" + file.content + b"\\0")
    digests.append(digest.hexdigest())
json.dump(digests, sys.stdout)
"""


def files_of(text: str) -> dict[str, bytes]:
    """What a config renders to."""
    root = root_module_of(parse_config(text.encode(), name="sectors.yaml"))
    return {file.path: file.content for file in render(root)}


def digest_of(text: str) -> str:
    """One digest over names and contents."""
    digest = hashlib.sha256()
    for path, content in files_of(text).items():
        digest.update(path.encode() + b"\0" + content + b"\0")
    return digest.hexdigest()


def test_random_valid_configs_render_to_the_same_bytes_everywhere(closing_lines: list[str]) -> None:
    """Two replicas that render differently would commit over each other for ever."""
    texts = drawn(rounds(40, 200))
    ours = [digest_of(text) for text in texts]
    assert ours == [digest_of(text) for text in texts]
    for seed in ("0", "4711"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}  # noqa: TID251 - PATH and HOME
        done = subprocess.run(
            [sys.executable, "-c", RENDERING],
            input=json.dumps(texts),
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=600,
        )
        assert json.loads(done.stdout) == ours
    closing_lines.append(f"{len(texts)} random valid configs rendered alike, in three processes")


def test_random_valid_configs_arrive_literally() -> None:
    """Every text of the config is in the variables as it was written."""
    for text in drawn(rounds(40, 200)):
        document = yaml.safe_load(text)
        variables = json.loads(files_of(text)[TFVARS])
        assert variables["cluster_name"] == document["cluster"]
        for fleet in variables["fleets"].values():
            sector = document["sectors"][fleet["sector_label"]]
            levels = [document, sector, _entry(sector, fleet)]
            inner = [level.get("terraform", {}) for level in levels]
            assert fleet.get("tags", {}) == _merged(inner, "tags")
            labels = [*((level, "node_labels") for level in inner)]
            labels += [(level, "labels") for level in levels[1:]]
            merged: dict[str, str] = {}
            for level, key in labels:
                merged |= level.get(key, {})
            assert fleet.get("node_labels", {}) == merged


def _entry(sector: Document, fleet: dict[str, Any]) -> Document:
    """The fleet of the config that these variables are of."""
    (found,) = (
        entry
        for entry in sector["fleets"]
        if (entry["size"], entry.get("zone")) == (fleet["node_pool_size"], fleet.get("zone"))
    )
    entry: Document = found
    return entry


def _merged(levels: list[Document], key: str) -> dict[str, str]:
    """Entries of all levels, the nearest (last) in force."""
    merged: dict[str, str] = {}
    for level in levels:
        merged |= level.get(key, {})
    return merged


def test_hostile_configs_are_refused_at_their_place_or_stay_literal(
    closing_lines: list[str],
) -> None:
    """A text that becomes code runs with the pipeline's rights on AWS."""
    every = hostile_documents()
    step = max(1, len(every) // rounds(500, len(every)))
    base = files_of(yaml.safe_dump(BASE))
    outcomes = {"refused": 0, "literal": 0}
    for place, payload, text in every[::step]:
        try:
            files = files_of(text)
        except ConfigError as error:
            outcomes["refused"] += 1
            _assert_placed(error, place)
            continue
        outcomes["literal"] += 1
        assert set(files) == set(base), place
        for path in ("main.tf", "outputs.tf", "versions.tf"):
            # An optional setting that is empty is left out.
            assert payload == "" or skeleton(files[path]) == skeleton(base[path]), place
        for path in files.keys() - {"main.tf", "versions.tf", TFVARS}:
            assert files[path] == base[path], (place, path)
        _assert_literal(files, place, payload)
    places = len(list(places_of(BASE)))
    closing_lines.append(f"{sum(outcomes.values())} hostile configs at {places} places: {outcomes}")
    assert sum(outcomes.values()) >= 500


def _assert_placed(error: ConfigError, place: tuple[str | int, ...]) -> None:
    """A fault names its line and column, on one line, not the whole payload."""
    assert error.problems
    for problem in error.problems:
        assert problem.line >= 1, (place, problem)
        assert problem.column >= 1, (place, problem)
        assert problem.message.isprintable(), (place, problem)
        assert len(problem.message) < 1000, (place, problem)
    top = str(place[0])
    known = {top, "cluster", "sectors", "terraform", "sizes", ""}
    assert any(problem.path.split(".")[0].split("[")[0] in known for problem in error.problems)


def _assert_literal(files: dict[str, bytes], place: tuple[str | int, ...], payload: str) -> None:
    """The payload is found again, whole, where a text of the config belongs."""
    variables = json.loads(files[TFVARS])
    texts = set(_texts(variables))
    for path in ("main.tf", "versions.tf"):
        texts |= {read_hcl(match[1]) for match in STRING.finditer(files[path].decode())}
    absent = payload == "" and place[-1] != "<key>"
    sizes_are_not_rendered = place[0] == "sizes"
    overridden = place[:3] == ("terraform", "node_labels", "tier") or place[0] == "cluster"
    assert payload in texts or absent or sizes_are_not_rendered or overridden, (place, payload)


def _texts(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            yield key
            yield from _texts(value)
    elif isinstance(node, list):
        for value in node:
            yield from _texts(value)
    elif isinstance(node, str):
        yield node
