"""The server as a thing: start, stop, what it leaves behind, and services that are moto's own."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from reconciler.model.errors import ToolError, UsageError
from reconciler.sandbox.aws.bootstrap import bootstrap_account
from reconciler.sandbox.aws.process import AwsProcess
from reconciler.sandbox.aws.server import AwsServer
from reconciler.sandbox.aws.values import Delays
from reconciler.sandbox.processes import start_child

LONG_SECONDS = 60.0
"""What no test waits for, however slow the machine."""


def client(service: str, url: str, keys: tuple[str, str] = ("test", "test")) -> Any:
    """A boto3 client, with dummy credentials unless told."""
    session: Any = boto3.Session(*keys, region_name="us-west-2")
    return session.client(service, endpoint_url=url)


def is_listening(url: str) -> bool:
    """Whether anybody answers at the URL's port."""
    with socket.socket() as probe:
        probe.settimeout(5)
        return probe.connect_ex(("127.0.0.1", int(url.rsplit(":", 1)[1]))) == 0


def test_stop_leaves_no_thread_and_no_port() -> None:
    """A test suite or demo that leaks servers fails later, somewhere else."""
    before = set(threading.enumerate())
    with AwsServer() as aws:
        url = aws.url
        with urllib.request.urlopen(f"{url}/_sandbox/health", timeout=60) as answer:  # noqa: S310 - loopback
            assert json.load(answer) == {"status": "ok"}
        assert is_listening(url)
    assert set(threading.enumerate()) <= before  # what ended meanwhile was another test's
    assert not is_listening(url)


def test_stop_does_not_wait_for_idle_or_waiting_clients() -> None:
    """A client that keeps its connection open, or waits for news, must not hold up the end."""
    aws = AwsServer()
    url = aws.start()
    port = int(url.rsplit(":", 1)[1])
    with socket.create_connection(("127.0.0.1", port)) as idle:
        idle.sendall(
            b"GET /_sandbox/instances?since=99&wait_seconds=60 HTTP/1.1\r\nHost: x\r\n\r\n"
        )
        stopper = threading.Thread(target=aws.stop)
        stopper.start()
        stopper.join(LONG_SECONDS)
        assert not stopper.is_alive()


def test_stop_ends_a_long_poll_of_the_queue() -> None:
    """The reconciler long-polls for interruptions all the time: the end must not wait 20 s."""
    aws = AwsServer()
    sqs = client("sqs", aws.start())
    queue = sqs.create_queue(QueueName="interruptions")["QueueUrl"]
    once = Config(retries={"total_max_attempts": 1})
    patient = boto3.Session("test", "test", region_name="us-west-2").client(
        "sqs", endpoint_url=aws.url, config=once
    )
    seen: list[BotoCoreError] = []

    def poll() -> None:
        try:
            patient.receive_message(QueueUrl=queue, WaitTimeSeconds=20)
        except BotoCoreError as error:
            seen.append(error)

    poller = threading.Thread(target=poll)
    poller.start()
    sqs.send_message(QueueUrl=queue, MessageBody="first")
    poller.join(LONG_SECONDS)
    poller = threading.Thread(target=poll)
    poller.start()
    sqs.get_queue_url(QueueName="interruptions")
    stopper = threading.Thread(target=aws.stop)
    stopper.start()
    stopper.join(LONG_SECONDS)
    poller.join(LONG_SECONDS)
    assert not stopper.is_alive()
    assert not poller.is_alive()
    assert len(seen) == 1
    sqs.close()
    patient.close()


def test_second_server_in_one_process_is_refused() -> None:
    """Moto's state is the process's: two servers would mix their accounts."""
    with AwsServer(), pytest.raises(UsageError, match="another one runs"):
        AwsServer().start()


def test_taken_port_is_refused_and_a_later_start_works() -> None:
    """A port conflict is an error with words, not the end of the process."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(UsageError, match="choose another port"):
            AwsServer(port=taken.getsockname()[1]).start()
    with AwsServer() as aws:
        assert aws.url


def test_state_does_not_survive_a_restart() -> None:
    """A demo that starts over must find an empty account."""
    for _ in range(2):
        with AwsServer() as aws:
            sqs = client("sqs", aws.url)
            assert "QueueUrls" not in sqs.list_queues()
            sqs.create_queue(QueueName="news")
            sqs.close()


def test_bootstrap_names_what_a_config_needs() -> None:
    """A demo config must name ids that exist, in every Region."""
    with AwsServer() as aws:
        for region in ("us-west-2", "us-east-1"):
            ids = bootstrap_account(aws.url, region)
            assert all(zone.startswith(region) for zone in ids.subnet_ids)
            assert len(ids.subnet_ids) >= 3
            assert ids.ami.startswith("ami-")
            assert ids.security_group_id.startswith("sg-")


def test_s3_conditional_put_answers_412() -> None:
    """Terraform's state lock rests on exactly this answer."""
    with AwsServer() as aws:
        s3 = client("s3", aws.url)
        where = {"CreateBucketConfiguration": {"LocationConstraint": "us-west-2"}}
        s3.create_bucket(Bucket="state", **where)
        s3.put_object(Bucket="state", Key="lock", Body=b"one", IfNoneMatch="*")
        with pytest.raises(ClientError) as caught:
            s3.put_object(Bucket="state", Key="lock", Body=b"two", IfNoneMatch="*")
        assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 412
        assert s3.get_object(Bucket="state", Key="lock")["Body"].read() == b"one"
        s3.delete_object(Bucket="state", Key="lock")
        s3.put_object(Bucket="state", Key="lock", Body=b"two", IfNoneMatch="*")
        s3.close()


def test_iam_policy_is_enforced_when_asked_for() -> None:
    """The shipped policy is proved by what it refuses: our own operations must ask IAM too."""
    policy = {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": ["ec2:DescribeFleets"], "Resource": "*"}],
    }
    with AwsProcess() as aws:
        iam = client("iam", aws.url)
        iam.create_user(UserName="reconciler")
        iam.put_user_policy(
            UserName="reconciler", PolicyName="least", PolicyDocument=json.dumps(policy)
        )
        key = iam.create_access_key(UserName="reconciler")["AccessKey"]
        aws.control.enforce_iam(enforced=True)
        ec2 = client("ec2", aws.url, (key["AccessKeyId"], key["SecretAccessKey"]))
        assert ec2.describe_fleets()["Fleets"] == []
        refusals: list[Callable[[], object]] = [
            lambda: ec2.modify_fleet(FleetId="fleet-1"),
            lambda: ec2.terminate_instances(InstanceIds=["i-0123456789abcdef0"]),
            ec2.describe_instances,
        ]
        for refused in refusals:
            with pytest.raises(ClientError) as caught:
                refused()
            assert caught.value.response["Error"]["Code"] == "UnauthorizedOperation"
            assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403
        aws.control.enforce_iam(enforced=False)
        iam.list_users()
        iam.close()
        ec2.close()


def test_auto_scaling_group_launches_beside_fleets() -> None:
    """Groups are moto's own; they must still work through the same server."""
    with AwsServer() as aws:
        ids = bootstrap_account(aws.url)
        ec2, groups = client("ec2", aws.url), client("autoscaling", aws.url)
        template = ec2.create_launch_template(
            LaunchTemplateName="asg",
            LaunchTemplateData={"ImageId": ids.ami, "InstanceType": "m5.large"},
        )["LaunchTemplate"]
        groups.create_auto_scaling_group(
            AutoScalingGroupName="workers",
            MinSize=0,
            MaxSize=5,
            DesiredCapacity=2,
            LaunchTemplate={
                "LaunchTemplateId": template["LaunchTemplateId"],
                "Version": "$Latest",
            },
            VPCZoneIdentifier=",".join(ids.subnet_ids.values()),
        )
        members = groups.describe_auto_scaling_groups()["AutoScalingGroups"][0]["Instances"]
        assert len(members) == 2
        groups.terminate_instance_in_auto_scaling_group(
            InstanceId=members[0]["InstanceId"], ShouldDecrementDesiredCapacity=True
        )
        group = groups.describe_auto_scaling_groups()["AutoScalingGroups"][0]
        left = [i for i in group["Instances"] if not i["LifecycleState"].startswith("Term")]
        assert [i["InstanceId"] for i in left] == [members[1]["InstanceId"]]
        ec2.close()
        groups.close()


def test_time_passes_by_itself_on_the_system_clock() -> None:
    """With nobody asking, instances still start: the thread wakes for them."""
    delays = Delays(launch_seconds=0.2)
    with AwsServer(delays=delays) as aws:
        ids = bootstrap_account(aws.url)
        ec2 = client("ec2", aws.url)
        template = ec2.create_launch_template(
            LaunchTemplateName="x",
            LaunchTemplateData={"ImageId": ids.ami, "InstanceType": "m5.large"},
        )["LaunchTemplate"]["LaunchTemplateId"]
        ec2.create_fleet(
            LaunchTemplateConfigs=[
                {"LaunchTemplateSpecification": {"LaunchTemplateId": template, "Version": "1"}}
            ],
            TargetCapacitySpecification={
                "TotalTargetCapacity": 1,
                "DefaultTargetCapacityType": "spot",
            },
        )
        change, instances = aws.world.instances(since=0, wait_seconds=LONG_SECONDS)
        while instances[0]["state"] != "running":
            last = change
            change, instances = aws.world.instances(since=last, wait_seconds=LONG_SECONDS)
            assert change > last
        ec2.close()


def test_process_serves_and_ends_without_a_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sandbox as a process: one JSON line when ready, nothing left after SIGTERM."""
    monkeypatch.setattr("reconciler.sandbox.aws.process.start_child", start_child)
    with AwsProcess(delays=Delays(launch_seconds=0.1)) as aws:
        url = aws.url
        assert bootstrap_account(url).subnet_ids
        assert "ec2:DescribeVpcs" in aws.control.call_counts()
    assert not is_listening(url)


def test_process_on_a_taken_port_says_so(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The starter gets an error and not a hang."""
    monkeypatch.setattr("reconciler.sandbox.aws.process.start_child", start_child)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ToolError, match="ended with code 2"):
            AwsProcess(port=taken.getsockname()[1]).start()
    assert "choose another port" in capfd.readouterr().err


def test_process_dies_with_its_parent() -> None:
    """A killed demo must not leave servers behind."""
    script = (
        "from reconciler.sandbox.aws.process import AwsProcess\n"
        "import sys\n"
        "aws = AwsProcess()\n"
        "print(aws.start(), aws._child.pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        url, pid = parent.stdout.readline().split()
        watch = os.pidfd_open(int(pid))
        parent.send_signal(signal.SIGKILL)
    try:
        assert select.select([watch], [], [], LONG_SECONDS)[0]
    finally:
        os.close(watch)
    assert not is_listening(url)
