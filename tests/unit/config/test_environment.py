"""Flag beats environment beats file beats default."""

from pathlib import Path

import pytest

from reconciler.config.environment import SETTINGS, load_with_overrides
from reconciler.model.errors import ConfigError, UsageError


@pytest.fixture
def config_file(tmp_path: Path) -> Path:
    """A config that states a few of the settings."""
    file = tmp_path / "sectors.yaml"
    file.write_text("cluster: filed\nsleep_interval: 20\nscale_in: {type_spares: 2}\n")
    return file


def test_each_source_beats_the_next(config_file: Path) -> None:
    """A flag typed in an emergency must win over what the Deployment sets."""
    environ = {"RECONCILER_SLEEP": "5", "RECONCILER_CLUSTER_NAME": "env"}
    assert load_with_overrides(config_file, {}, {}).sleep_interval_seconds == 20
    assert load_with_overrides(config_file, {}, environ).sleep_interval_seconds == 5
    flagged = load_with_overrides(config_file, {"sleep": "7s", "cluster-name": None}, environ)
    assert (flagged.sleep_interval_seconds, flagged.cluster) == (7, "env")


def test_every_setting_can_come_from_the_environment(config_file: Path) -> None:
    """A Deployment configures by environment only."""
    environ = {
        "RECONCILER_CLUSTER_NAME": "1234",
        "RECONCILER_REGIONS": "us-east-1, us-west-2",
        "RECONCILER_KUBECONFIG": "kube.yaml",
        "RECONCILER_CATALOGUE": "prices.json",
        "RECONCILER_POD_NAMESPACE": "true",
        "RECONCILER_IDLE_THRESHOLD": "5m",
        "RECONCILER_TYPE_IDLE_THRESHOLD": "60",
        "RECONCILER_INSTANCE_INIT_TIME": "10m",
        "RECONCILER_SLEEP": "1.5",
        "RECONCILER_SLACK_HOOK": "https://hooks.example/x",
        "RECONCILER_DRY_RUN": "yes",
        "RECONCILER_LEADER_ELECT": "no",
        "RECONCILER_LEASE_NAMESPACE": "ops",
        "RECONCILER_VERBOSITY": "2",
        "RECONCILER_LISTEN": ":9235",
        "RECONCILER_CONTEXT": "prod",
        "RECONCILER_LISTEN_TOKEN_FILE": "/run/token",
    }
    assert {setting.variable for setting in SETTINGS} == set(environ)
    config = load_with_overrides(config_file, {}, environ)
    assert (config.cluster, config.pod_namespace) == ("1234", "true")
    assert config.regions == ("us-east-1", "us-west-2")
    assert config.catalogue == "prices.json"
    assert (config.kubeconfig, config.listen) == ("kube.yaml", ":9235")
    assert config.kube_context == "prod"
    assert config.listen_token_file == "/run/token"
    assert config.leader_election.namespace == "ops"
    assert config.scale_in.idle_threshold_seconds == 300
    assert config.scale_in.type_idle_threshold_seconds == 60
    assert config.scale_in.type_spares == 2
    assert config.scale_in.states_idle_threshold
    assert config.instance_init_time_seconds == 600
    assert config.sleep_interval_seconds == 1.5
    assert config.notifications.slack_hook.get_secret_value() == "https://hooks.example/x"
    assert (config.dry_run, config.verbosity) == (True, 2)
    assert not config.leader_election.enabled


def test_flag_that_is_not_given_changes_nothing(config_file: Path) -> None:
    """`--no-dry-run` by default must not override the file."""
    config_file.write_text("dry_run: true\nverbosity: 1\n")
    config = load_with_overrides(config_file, {"dry-run": False, "verbosity": 0}, {})
    assert (config.dry_run, config.verbosity) == (True, 1)


@pytest.mark.parametrize(
    ("flags", "environ", "where"),
    [
        ({"sleep": "soon"}, {}, "--sleep"),
        ({}, {"RECONCILER_IDLE_THRESHOLD": "-1"}, "RECONCILER_IDLE_THRESHOLD"),
        ({"regions": "mars"}, {}, "--regions"),
        ({"cluster-name": "-bad-"}, {}, "--cluster-name"),
        ({"pod-namespace": "Bad NS"}, {}, "--pod-namespace"),
        ({"listen": "foo"}, {}, "--listen"),
        ({}, {"RECONCILER_LISTEN": "localhost:99999"}, "RECONCILER_LISTEN"),
    ],
)
def test_bad_value_is_a_usage_error_that_names_its_source(
    config_file: Path, flags: dict[str, str], environ: dict[str, str], where: str
) -> None:
    """Blaming the file for a variable sends people to the wrong place."""
    with pytest.raises(UsageError) as caught:
        load_with_overrides(config_file, flags, environ)
    assert caught.value.where == where
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("flags", "environ", "where"),
    [
        ({"regions": "us-west-2,us-east-1,us-west-2"}, {}, "--regions"),
        ({}, {"RECONCILER_REGIONS": "us-west-2, us-west-2"}, "RECONCILER_REGIONS"),
    ],
)
def test_region_that_is_named_twice_is_refused_as_in_the_file(
    config_file: Path, flags: dict[str, str], environ: dict[str, str], where: str
) -> None:
    """Every fleet would be there twice, and each of them would launch for the same pods."""
    with pytest.raises(UsageError, match="us-west-2 is already in the list") as caught:
        load_with_overrides(config_file, flags, environ)
    assert caught.value.where == where


@pytest.mark.parametrize("text", ["", " ", ","])
def test_list_without_an_entry_does_not_replace_that_of_the_file(
    config_file: Path, text: str
) -> None:
    """The program would look after other Regions than those of the file."""
    with pytest.raises(UsageError, match="--regions: is empty"):
        load_with_overrides(config_file, {"regions": text}, {})


@pytest.mark.parametrize(
    "flag", [setting.flag for setting in SETTINGS if setting.flag != "cluster-name"]
)
def test_empty_flag_is_refused_and_an_empty_variable_is_none(config_file: Path, flag: str) -> None:
    """A script's unset variable in place of a value would turn off what the file says."""
    with pytest.raises(UsageError) as caught:
        load_with_overrides(config_file, {flag: ""}, {})
    assert str(caught.value) == f"--{flag}: is empty (leave it out, or give it a value)"
    variable = next(setting.variable for setting in SETTINGS if setting.flag == flag)
    assert load_with_overrides(config_file, {}, {variable: " "}) == load_with_overrides(
        config_file, {}, {}
    )


def test_slack_hook_is_not_in_the_error(config_file: Path) -> None:
    """The environment holds it as a Secret."""
    with pytest.raises(UsageError) as caught:
        load_with_overrides(config_file, {}, {"RECONCILER_SLACK_HOOK": "hooks.example/secret"})
    assert "secret/" not in str(caught.value)
    assert "hooks.example" not in str(caught.value)


def test_cluster_name_from_outside_is_checked_against_the_tags(config_file: Path) -> None:
    """Its ownership tag is reserved however the name arrives."""
    config_file.write_text("terraform: {tags: {kubernetes.io/cluster/prod: owned}}\n")
    with pytest.raises(ConfigError, match="tags/reserved"):
        load_with_overrides(config_file, {"cluster-name": "prod"}, {})


def test_catalogue_is_beside_the_config_that_names_it(tmp_path: Path) -> None:
    """`manifest` and the pipelines look there, as for the policy file; `plan` looked elsewhere."""
    file = tmp_path / "sectors.yaml"
    file.write_text("cluster: a\ncatalogue: prices.json\n")
    named = load_with_overrides(file, {}, {}).catalogue
    assert named == str(tmp_path / "prices.json")
    assert load_with_overrides(file, {"catalogue": "mine.json"}, {}).catalogue == "mine.json"


@pytest.mark.parametrize("text", ["Foo Bar", "Foo_", "a" * 64])
def test_namespace_of_the_lease_is_a_name_of_one(config_file: Path, text: str) -> None:
    """The API server refuses it, and no replica would ever lead."""
    with pytest.raises(UsageError, match="name of a namespace"):
        load_with_overrides(config_file, {}, {"RECONCILER_LEASE_NAMESPACE": text})
