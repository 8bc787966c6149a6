"""`reconciler import --programs`: the flags of other programs become sections of a config."""

from pathlib import Path

import pytest
import yaml

from reconciler.config.loader import load_config
from tests.cli.importing.desk import Desk

SPOT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: k8s-spot-rescheduler}
spec:
  template:
    spec:
      containers:
      - name: k8s-spot-rescheduler
        image: quay.io/pusher/k8s-spot-rescheduler:v0.3.0
        command: [rescheduler]
        args:
        - -v=2
        - --running-in-cluster=true
        - --namespace=kube-system
        - --housekeeping-interval=20s
        - --node-drain-delay
        - 5m
        - --delete-non-replicated-pods
        - --on-demand-node-label=node-role=worker
        - --colour=red
"""
POLICY = """\
apiVersion: "descheduler/v1alpha2"
kind: "DeschedulerPolicy"
profiles:
- name: default
  pluginConfig:
  - name: RemovePodsHavingTooManyRestarts
    args: {podRestartThreshold: 50, includingInitContainers: true}
  plugins:
    deschedule:
      enabled: [RemovePodsHavingTooManyRestarts, RemovePodsViolatingNodeTaints]
"""
DESCHEDULER = f"""\
apiVersion: v1
kind: ConfigMap
metadata: {{name: descheduler}}
data:
  policy.yaml: |
{"".join(f"    {line}" + chr(10) for line in POLICY.splitlines())}
---
apiVersion: batch/v1
kind: CronJob
metadata: {{name: descheduler}}
spec:
  schedule: "*/2 * * * *"
  jobTemplate:
    spec:
      template:
        spec:
          containers:
          - name: descheduler
            image: registry.k8s.io/descheduler/descheduler:v0.31.0
            command: [/bin/descheduler]
            args: [--policy-config-file=/policy-dir/policy.yaml, --v=3, --otel-sample-rate=0.5]
"""


def write(desk: Desk, name: str, text: str) -> str:
    """A manifest; its path."""
    file = desk.folder / name
    file.write_text(text)
    return str(file)


def completed(out: Path) -> Path:
    """The sections in a whole config, as `validate` and `run` read it."""
    sections = (out / "rescheduling.yaml").read_text()
    whole = out / "sectors.yaml"
    sectors = "sectors: {primary: {kind: memory, fleets: [{size: small}]}}\n"
    whole.write_text(f"cluster: analytics\n{sections}{sectors}")
    return whole


def test_flags_of_both_programs_become_sections_that_load(desk: Desk) -> None:
    """Whoever moves must not find out by reading source code what a flag was."""
    files = (write(desk, "spot.yaml", SPOT), write(desk, "descheduler.yaml", DESCHEDULER))
    code, answer, err = desk.adopt("--programs", *files)
    assert (code, err) == (0, "")
    assert len(answer["found"]) == 3
    loaded = load_config(completed(desk.folder / "out"))
    spot = loaded.spot_rescheduler
    assert spot.enabled
    assert (spot.housekeeping_interval_seconds, spot.node_drain_delay_seconds) == (20.0, 300.0)
    assert spot.delete_non_replicated_pods
    assert spot.on_demand_node_label == "node-role=worker"
    assert spot.spot_node_label == "kubernetes.io/role=spot-worker"
    policies = loaded.descheduler.policies
    assert loaded.descheduler.enabled
    assert policies.remove_pods_having_too_many_restarts.pod_restart_threshold == 50
    assert policies.remove_pods_violating_node_taints.enabled


def test_what_has_no_part_here_is_said(desk: Desk) -> None:
    """A flag that is dropped without a word is missed when it matters."""
    files = (write(desk, "spot.yaml", SPOT), write(desk, "descheduler.yaml", DESCHEDULER))
    _, answer, _ = desk.adopt("--programs", *files)
    notes = "\n".join(answer["notes"])
    for words in (
        "--v=2: no such setting",
        "--running-in-cluster=true: not needed",
        "--namespace=kube-system: not needed",
        "--colour=red is not known here: nothing was made of it",
        "spot_node_label is kubernetes.io/role=spot-worker, that program's default",
        "--otel-sample-rate=0.5: set `tracing: {endpoint: …}`",
        "runs the descheduler now and then; here it runs at most once per `interval`",
    ):
        assert words in notes


@pytest.mark.parametrize(
    ("flag", "enabled"),
    [
        ("--dry-run", False),
        ("--dry-run=true", False),
        ("--dry-run=$(DRY)", False),
        ("--dry-run=false", True),
        ("--v=3", True),
    ],
)
def test_descheduler_in_a_dry_run_evicts_nothing_here_either(
    desk: Desk, flag: str, *, enabled: bool
) -> None:
    """Whoever only tried it out would have pods evicted by the first apply."""
    text = DESCHEDULER.replace("--v=3", flag)
    _, answer, err = desk.adopt("--programs", write(desk, "descheduler.yaml", text))
    assert err == ""
    assert load_config(completed(desk.folder / "out")).descheduler.enabled is enabled
    said = [note for note in answer["notes"] if "--dry-run" in note]
    assert len(said) == (flag != "--v=3")
    assert all(("enabled is false" in note) is not enabled for note in said)


def test_policy_that_is_not_acted_on_whole_is_said_with_its_place(desk: Desk) -> None:
    """It would be refused on the day of the move, or worse, not."""
    text = POLICY.replace("kind:", "metricsCollector: {enabled: true}\nother: 1\nkind:")
    code, answer, _ = desk.adopt("--programs", write(desk, "policy.yaml", text))
    assert code == 0
    notes = [n for n in answer["notes"] if n.startswith("descheduler-policy.yaml:")]
    assert "2:1: key 'metricsCollector' is not acted on here" in notes[0]
    assert "3:1: key 'other' is not acted on here" in notes[1]
    assert yaml.safe_load((desk.folder / "out/descheduler-policy.yaml").read_text())["profiles"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kind: Deployment\nspec: {}\n", "no container runs k8s-spot-rescheduler or descheduler"),
        (SPOT.replace("=20s", "=soon"), "spot_rescheduler.housekeeping_interval: "),
        (SPOT.replace("node-role=worker", "a=b=c"), "spot_rescheduler.on_demand_node_label: "),
        (f"{SPOT}---\n{SPOT}", "a second program for spot_rescheduler"),
        (f"{POLICY}---\n{POLICY.replace('50', '60')}", "a second DeschedulerPolicy"),
        ("kind: Service\n---\n- a\n", "a.yaml:3:1: "),
        (
            "kind: ConfigMap\ndata:\n  p.yaml: 'kind: DeschedulerPolicy: x'\n",
            "a.yaml: p.yaml:1:24: not YAML",
        ),
    ],
)
def test_files_that_say_nothing_or_too_much_are_refused(desk: Desk, text: str, words: str) -> None:
    """Half of a config is found out about late."""
    code, _, err = desk.adopt("--programs", write(desk, "a.yaml", text))
    assert code != 0
    assert err.startswith("error: ")
    assert words in err
    assert "Traceback" not in err
    assert not (desk.folder / "out/rescheduling.yaml").exists()


def test_files_of_something_else_are_reported_with_what_they_hold(desk: Desk) -> None:
    """Whoever gave the wrong manifest sees which, and what to give instead."""
    web = """\
kind: Deployment
metadata: {name: web}
spec: {template: {spec: {containers: [{name: web, image: nginx:1}]}}}
"""
    names = [
        write(desk, "web.yaml", f"{web}---\n{web}---\nkind: Service\nmetadata: {{name: web}}\n"),
        write(desk, "values.yaml", "replicas: 2\n"),
        write(desk, "list.json", '{"kind": "List", "items": []}'),
    ]
    code, _, err = desk.adopt("--programs", *names)
    assert code == 1
    assert err == (
        f"error: {', '.join(names)}: no container runs k8s-spot-rescheduler or descheduler, and no"
        " document is a DeschedulerPolicy: found Deployment web with nginx:1 (2 times),"
        " Service web, a document without `kind`, an empty list (give their Deployment, CronJob or"
        " ConfigMap, or the policy file; a program is known by the name of its image or command)\n"
    )
    empty = write(desk, "empty.yaml", "# nothing\n")
    assert "there is nothing in it" in desk.adopt("--programs", empty)[2]
