"""AWS on loopback: moto over HTTP, with EC2 Fleet as EC2 really has it.

    with AwsServer(delays=Delays(launch_seconds=0.5)) as aws:
        ec2 = boto3.client("ec2", endpoint_url=aws.url, ...)

Or as a process: `python -m reconciler.sandbox.aws --port 0`. Beside the AWS services there is a
control API (`front.control`) for missing capacity, instances that die, and the log of calls.
"""
