"""The config of a running program: followed when it changes, kept when it breaks."""

import os
import re
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.bootstrap.capacity_loop.config_source import FIXED, ConfigSource, faults_of
from reconciler.config.catalogue import load_catalogue, render_catalogue
from reconciler.gitops.repository.followed import FollowedConfig
from reconciler.model.errors import ConfigError, InputError, ReconcilerError, UsageError
from reconciler.ports.repository import CommitId

CONFIG = """\
cluster: analytics
regions: [us-west-2]
sectors: {primary: {kind: memory, fleets: [{size: small, max_capacity: 5}]}}
"""
POLICY = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nprofiles: []\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A valid config."""
    path = tmp_path / "sectors.yaml"
    path.write_text(CONFIG)
    return path


def source_of(file: Path, home_region: str | None = None) -> ConfigSource:
    """The config as a program that just started has it."""
    return ConfigSource(str(file), {}, lambda: home_region)


def max_capacity(source: ConfigSource) -> int | None:
    """What plans are made with."""
    return source.settings.fleets()[0].max_capacity


def test_unchanged_file_is_not_read_as_a_new_config(file: Path) -> None:
    """A touch, or the swap of a ConfigMap's links, is no change."""
    source = source_of(file)
    file.unlink()
    file.write_text(CONFIG)
    assert source.refresh() is False


def test_changed_file_comes_into_force(file: Path) -> None:
    """A merged limit must hold without a restart."""
    source = source_of(file)
    file.write_text(CONFIG.replace("5", "9").replace("us-west-2", "eu-west-1"))
    assert source.refresh() is True
    assert max_capacity(source) == 9
    assert source.settings.regions == ("eu-west-1",)
    assert source.refresh() is False


@pytest.mark.timeout(60)
@pytest.mark.parametrize("key", ["catalogue: {}", "descheduler: {{policy_file: {}}}"])
def test_pipe_that_the_config_names_is_refused_and_not_waited_for(file: Path, key: str) -> None:
    """Nobody writes to it: the program would neither start nor say why."""
    os.mkfifo(file.with_name("pipe"))
    file.write_text(CONFIG + key.format(file.with_name("pipe")) + "\n")
    with pytest.raises((ConfigError, InputError), match="regular file"):
        source_of(file)


@pytest.mark.timeout(60)
def test_config_from_a_pipe_is_read_once() -> None:
    """`--config <(kubectl get configmap …)` was empty at the second reading."""
    ours, theirs = os.pipe()
    os.write(theirs, CONFIG.encode())
    os.close(theirs)
    try:
        source = ConfigSource(f"/dev/fd/{ours}", {}, lambda: None)
        assert max_capacity(source) == 5
        assert source.refresh() is False
    finally:
        os.close(ours)


def test_invalid_change_is_reported_once_and_not_followed(file: Path) -> None:
    """A typo must neither stop the program nor fill its log."""
    source = source_of(file)
    file.write_text(CONFIG + "nonsense: 1\nregion: 2\n")
    with pytest.raises(ConfigError) as refused:
        source.refresh()
    assert len(faults_of(refused.value)) == 2
    assert source.refresh() is False
    assert max_capacity(source) == 5
    file.write_text(CONFIG)
    assert source.refresh() is True


def test_file_that_vanishes_leaves_the_last_good_one(file: Path) -> None:
    """A volume that is remounted has no file for a moment."""
    source = source_of(file)
    file.unlink()
    with pytest.raises(ConfigError, match="no such file"):
        source.refresh()
    assert source.refresh() is False
    assert max_capacity(source) == 5


def test_another_cluster_is_refused_while_running(file: Path) -> None:
    """Fleets of one cluster must never be sized by the pods of another."""
    source = source_of(file)
    file.write_text(CONFIG.replace("analytics", "production"))
    with pytest.raises(UsageError, match="the cluster changed from analytics to production"):
        source.refresh()
    assert source.settings.cluster == "analytics"


def test_changed_policy_file_is_a_change(file: Path) -> None:
    """Descheduler policies live in a file of their own."""
    policy = file.with_name("policy.yaml")
    policy.write_text(POLICY)
    file.write_text(CONFIG + "descheduler: {policy_file: policy.yaml}\n")
    source = source_of(file)
    assert source.refresh() is False
    policy.write_text(POLICY + "# changed\n")
    assert source.refresh() is True


def test_config_refused_for_the_policy_file_that_it_names_is_read_again_once_fixed(
    file: Path,
) -> None:
    """The old config stayed in force, and validate said that the new one has no fault."""
    source = source_of(file)
    policy = file.with_name("policy.yaml")
    policy.write_text("profiles: [oops\n")
    file.write_text(CONFIG.replace("5", "9") + "descheduler: {policy_file: policy.yaml}\n")
    with pytest.raises(ConfigError, match=r"policy\.yaml"):
        source.refresh()
    assert source.refresh() is False
    policy.write_text(POLICY)
    assert source.refresh() is True
    assert max_capacity(source) == 9
    assert source.refresh() is False


@pytest.mark.parametrize("stated", [False, True])
def test_config_refused_for_its_catalogue_is_read_again_once_fixed(
    file: Path, *, stated: bool
) -> None:
    """The same for instance types, whether the config or the command line names their file."""
    catalogue = file.with_name("catalogue.json")
    own = render_catalogue(load_catalogue())
    catalogue.write_text(own)
    flags = {"catalogue": str(catalogue)} if stated else {}
    source = ConfigSource(str(file), flags, lambda: None)
    catalogue.write_text("[1]")
    more = "" if stated else f"catalogue: {catalogue}\n"
    file.write_text(CONFIG.replace("5", "9") + more)
    with pytest.raises(InputError, match="is not an instance catalogue"):
        source.refresh()
    assert source.refresh() is False
    catalogue.write_text(own)
    assert source.refresh() is True
    assert max_capacity(source) == 9


def test_keys_that_need_a_restart_are_named(file: Path) -> None:
    """Whoever moves the port must be told why nothing listens there."""
    source = source_of(file)
    before = source.config
    file.write_text(CONFIG + "listen: 127.0.0.1:9999\n")
    source.refresh()
    assert source.fixed_changes(before) == ("listen",)


@pytest.mark.parametrize(
    "section",
    ["recording: {path: 's3://bucket/demand'}", "tracing: {endpoint: 'http://127.0.0.1:4318'}"],
)
def test_section_that_is_read_at_the_start_alone_needs_a_restart(file: Path, section: str) -> None:
    """Nothing would be recorded or traced, and nobody told."""
    source = source_of(file)
    before = source.config
    file.write_text(CONFIG + section + "\n")
    source.refresh()
    assert source.fixed_changes(before) == (section.split(":", maxsplit=1)[0],)


def test_page_lists_the_keys_that_need_a_restart() -> None:
    """The list would miss the next key that is added to the program."""
    page = (Path(__file__).parents[4] / "docs" / "config.md").read_text()
    (told,) = re.findall(r"^Only a restart takes over (.+?)\. ", page, re.MULTILINE)
    assert re.findall(r"`(\w+)`", told) == list(FIXED)


def test_config_without_regions_takes_that_of_the_aws_settings(file: Path) -> None:
    """A guess would look for fleets where none are, and launch there."""
    file.write_text(CONFIG.replace("regions: [us-west-2]\n", ""))
    assert source_of(file, "eu-west-1").settings.home_region == "eu-west-1"
    with pytest.raises(UsageError, match="AWS_REGION"):
        source_of(file)


def in_git(text: str, commit: str = "a", **files: bytes) -> FollowedConfig:
    """The config as a commit has it."""
    return FollowedConfig(
        path="sectors.yaml", commit=CommitId(commit * 40), content=text.encode(), files=files
    )


def test_config_of_the_repository_takes_the_place_of_the_file(file: Path) -> None:
    """A commit never reached the capacity loop, which read its local file alone."""
    source = source_of(file)
    source.offer(in_git(CONFIG.replace("5", "9")))
    assert source.refresh() is True
    assert max_capacity(source) == 9
    assert source.path == "sectors.yaml@aaaaaaaaaaaa"
    file.write_text(CONFIG.replace("5", "7"))
    assert source.refresh() is False
    assert max_capacity(source) == 9


def test_same_config_of_another_commit_is_in_force_as_that_commit(file: Path) -> None:
    """Status and metric would name a commit that is not the head's."""
    source = source_of(file)
    source.offer(in_git(CONFIG))
    assert source.refresh() is True
    source.offer(in_git(CONFIG, "b"))
    assert source.refresh() is True
    assert source.commit == "b" * 40
    assert source.refresh() is False


def test_refused_config_of_the_repository_is_reported_once_and_not_followed(file: Path) -> None:
    """What git has may be for another cluster: the last good one stays."""
    source = source_of(file)
    source.offer(in_git(CONFIG))
    source.refresh()
    source.offer(in_git(CONFIG.replace("analytics", "production"), "b"))
    with pytest.raises(UsageError, match="the cluster changed"):
        source.refresh()
    assert source.refresh() is False
    assert (source.settings.cluster, source.commit) == ("analytics", "a" * 40)
    source.offer(in_git(CONFIG, "c"))
    assert source.refresh() is True
    assert source.commit == "c" * 40


def test_full_disk_keeps_a_config_of_the_repository_back_for_the_moment_alone(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The capacity loop ended with an error of the operating system's."""
    source = source_of(file)
    source.offer(in_git(CONFIG.replace("5", "9")))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    for _ in range(2):
        with pytest.raises(
            ReconcilerError, match="temporary directory: cannot be written: No such file"
        ):
            source.refresh()
        assert (max_capacity(source), source.commit) == (5, "")
    monkeypatch.undo()
    assert source.refresh() is True
    assert max_capacity(source) == 9


def test_repository_reads_no_file_of_this_machine(file: Path) -> None:
    """A commit must not show what lies on the nodes."""
    secret = file.with_name("secret.yaml")
    secret.write_text("password: x\n")
    source = source_of(file)
    text = f"{CONFIG}descheduler: {{policy_file: {secret}}}\n"
    source.offer(in_git(text))
    with pytest.raises(UsageError, match="is not in the folder of the config"):
        source.refresh()


def test_catalogue_of_a_commit_is_no_file_of_this_machine(file: Path) -> None:
    """A commit that names a pipe would hold up the loop for good."""
    here = file.with_name("catalogue.json")
    own = render_catalogue(load_catalogue())
    here.write_text(own)
    source = source_of(file)
    source.offer(in_git(f"{CONFIG}catalogue: {here}\n"))
    with pytest.raises(UsageError, match=r"catalogue '/.*' is not in the folder of the config"):
        source.refresh()
    beside = in_git(f"{CONFIG}catalogue: catalogue.json\n", "b")
    source.offer(beside)
    with pytest.raises(
        UsageError, match=r"catalogue 'catalogue\.json' is not in the folder of the config"
    ):
        source.refresh()
    source.offer(replace(beside, files={"catalogue.json": own.encode()}))
    assert source.refresh() is True
    stated = ConfigSource(str(file), {"catalogue": str(here)}, lambda: None)
    stated.offer(beside)
    assert stated.refresh() is True


@pytest.mark.parametrize("content", ["[1]", "[" * 200_000, '{"types": ' + '{"a":' * 100_000])
def test_catalogue_that_cannot_be_read_leaves_the_config_in_force(file: Path, content: str) -> None:
    """What a commit names beside its config must not end the loop that sizes the fleets."""
    source = source_of(file)
    catalogue = file.parent / "catalogue.json"
    catalogue.write_text(content)
    file.write_text(CONFIG.replace("5", "9") + f"catalogue: {catalogue}\n")
    with pytest.raises(InputError, match="is not an instance catalogue"):
        source.refresh()
    assert source.refresh() is False
    assert max_capacity(source) == 5


@pytest.mark.parametrize("nested", ["[" * 200_000, "a: " * 200_000, "{a: " * 200_000])
@pytest.mark.parametrize("beside", [False, True])
def test_deeply_nested_config_or_policy_file_leaves_the_config_in_force(
    file: Path, nested: str, *, beside: bool
) -> None:
    """The same for the config itself, and for the descheduler's policies."""
    source = source_of(file)
    (file.parent / "policies.yaml").write_text(nested)
    policies = "descheduler: {policy_file: policies.yaml}\n"
    file.write_text(CONFIG + policies if beside else nested)
    with pytest.raises(ConfigError):
        source.refresh()
    assert max_capacity(source) == 5
