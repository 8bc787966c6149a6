"""`reconciler manifest --repository`: the second loop in the same pods."""

from pathlib import Path

import yaml

from tests.unit.install.command import run

REPOSITORY = "https://git.example/fleets.git"


def test_second_loop_gets_what_it_needs_in_the_same_pods(tmp_path: Path) -> None:
    """Its token comes from a Secret, its clone is on a volume of the pod."""
    done = run(tmp_path, "--repository", "https://git.example/config.git")
    assert done.returncode == 0, done.stderr
    made = {each["kind"]: each for each in yaml.safe_load_all(done.stdout)}
    (container,) = made["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert container["args"][5:8] == ["--gitops", "--repository", "https://git.example/config.git"]
    variables = {each["name"]: each.get("value") for each in container["env"]}
    assert "RECONCILER_GIT_TOKEN" not in variables  # others may read a process's variables
    mounted = {
        volume_mount["name"]: volume_mount["mountPath"]
        for volume_mount in container["volumeMounts"]
    }
    volumes = {
        volume["name"]: volume
        for volume in made["Deployment"]["spec"]["template"]["spec"]["volumes"]
    }
    assert variables["RECONCILER_GIT_TOKEN_FILE"] == f"{mounted['git']}/git-token"
    secret = volumes["git"]["secret"]
    assert (secret["secretName"], secret["optional"]) == ("fleet-reconciler", True)
    assert container["resources"]["limits"]["memory"] == "2Gi"


def test_second_loop_looks_where_the_configs_of_the_repository_are(tmp_path: Path) -> None:
    """A repository with one directory per cluster has no sectors.yaml at its top."""
    paths = ("--gitops-config", "clusters/*/sectors.yaml", "--gitops-config", "more/sectors.yaml")
    done = run(tmp_path, "--repository", REPOSITORY, *paths, "--out", "fleets")
    assert done.returncode == 0, done.stderr
    made = {each["kind"]: each for each in yaml.safe_load_all(done.stdout)}
    (container,) = made["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert container["args"][-6:] == [*paths, "--out", "fleets"]
