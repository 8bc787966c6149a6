"""What `reconciler record` asks a Prometheus server, evaluated by Prometheus' own program."""

import subprocess
from datetime import timedelta
from pathlib import Path

import yaml

from reconciler.records.demand.prometheus import queries
from tests.project.go_tools import promtool

POD = 'cluster="prod",namespace="ci",pod="a",uid="u"'
CAME = "x40 _x80"
"""A sample each minute, for forty minutes; then the pod was deleted."""
SERIES = {
    f"kube_pod_created{{{POD}}}": f"1000{CAME}",
    f"kube_pod_start_time{{{POD}}}": f"1010{CAME}",
    f"kube_pod_completion_time{{{POD}}}": "_x30 1800x10 _x80",
    f'kube_pod_status_phase{{{POD},phase="Running"}}': "1x30 0x10 _x80",
    f'kube_pod_status_phase{{{POD},phase="Succeeded"}}': "0x30 1x10 _x80",
    f'kube_pod_status_phase{{{POD},phase="Failed"}}': f"0{CAME}",
    f'kube_pod_owner{{{POD},owner_kind="Job",owner_name="b"}}': f"1{CAME}",
    f'kube_pod_container_resource_requests{{{POD},container="c",resource="cpu",node="n"}}': (
        f"0.5{CAME}"
    ),
    f'kube_pod_container_resource_requests{{{POD},container="c",resource="memory"}}': f"1024{CAME}",
    f'kube_pod_init_container_resource_requests{{{POD},container="i",resource="cpu"}}': f"2{CAME}",
    f'kube_pod_init_container_info{{{POD},container="i",restart_policy=""}}': f"1{CAME}",
    f'kube_pod_init_container_info{{{POD},container="p",restart_policy="Always"}}': f"1{CAME}",
    f'kube_pod_tolerations{{{POD},key="k",operator="Exists",effect="NoSchedule"}}': f"1{CAME}",
    f'kube_pod_nodeselectors{{{POD},nodeselector_sector="batch"}}': f"1{CAME}",
    'kube_pod_created{cluster="other",namespace="ci",pod="z",uid="z"}': "5x120",
}
TARGET = 'cluster="prod",namespace="monitoring",pod="ksm",uid="v",exported_namespace="ci"'
REPLACED = {
    f'kube_pod_created{{{TARGET},exported_pod="a"}}': f"1000{CAME}",
    f'kube_pod_created{{{TARGET},exported_pod="b"}}': f"2000{CAME}",
    f'kube_pod_container_resource_requests{{{TARGET},exported_pod="a",container="ksm",'
    'exported_container="c",resource="cpu"}': f"0.5{CAME}",
    f'kube_pod_container_resource_requests{{{TARGET},exported_pod="a",container="ksm",'
    'exported_container="d",resource="cpu"}': f"2{CAME}",
}
"""Of a server without `honor_labels`: the target's labels stand where the pods' own should."""
OWN = 'namespace="ci",pod="a",uid="u"'
TOLD: dict[str, dict[str, float]] = {
    "created": {f"{{{OWN}}}": 1000},
    "seen": {f"{{{OWN}}}": 2400},
    "started": {f"{{{OWN}}}": 1010},
    "completed": {f"{{{OWN}}}": 1800},
    "finished": {f"{{{OWN}}}": 1},
    "owner": {f'{{{OWN},owner_kind="Job",owner_name="b"}}': 1},
    "requests": {
        f'{{{OWN},container="c",resource="cpu"}}': 0.5,
        f'{{{OWN},container="c",resource="memory"}}': 1024,
    },
    "init": {f'{{{OWN},container="i",resource="cpu"}}': 2},
    "sidecars": {f'{{{OWN},container="p"}}': 1},
    "tolerations": {f'{{{OWN},key="k",operator="Exists",effect="NoSchedule"}}': 1},
    "selectors": {f'{{{POD},nodeselector_sector="batch"}}': 1},
}


def test_queries_tell_of_each_pod_of_the_hour_and_of_no_other_cluster(tmp_path: Path) -> None:
    """An expression that Prometheus reads otherwise than meant would record another history."""
    assert set(queries('cluster="prod"', timedelta(hours=1))) == set(TOLD)
    check(tmp_path, SERIES, TOLD)


def test_queries_keep_pods_apart_whose_labels_the_server_replaced(tmp_path: Path) -> None:
    """All would be one pod of the namespace in which kube-state-metrics runs."""
    own = TARGET.removeprefix('cluster="prod",')
    check(
        tmp_path,
        REPLACED,
        {
            "created": {
                f'{{{own},exported_pod="a"}}': 1000,
                f'{{{own},exported_pod="b"}}': 2000,
            },
            "requests": {
                f'{{{own},exported_pod="a",container="ksm",exported_container="{name}",'
                'resource="cpu"}': amount
                for name, amount in (("c", 0.5), ("d", 2))
            },
        },
    )


def check(tmp_path: Path, stored: dict[str, str], told: dict[str, dict[str, float]]) -> None:
    """Have Prometheus' own program compare what queries return."""
    asked = queries('cluster="prod"', timedelta(hours=1))
    tests = [
        {
            "expr": asked[name],
            "eval_time": "60m",
            "exp_samples": [{"labels": labels, "value": v} for labels, v in each.items()],
        }
        for name, each in told.items()
    ]
    series = [{"series": each, "values": values} for each, values in stored.items()]
    document = {"tests": [{"interval": "1m", "input_series": series, "promql_expr_test": tests}]}
    file = tmp_path / "test.yaml"
    file.write_text(yaml.safe_dump(document))
    command = [promtool(), "test", "rules", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
