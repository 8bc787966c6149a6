"""Which user data may stand in a config: none that holds a secret."""

import pytest

from reconciler.gitops.adoption.notes import holds_secret


@pytest.mark.parametrize(
    "text",
    [
        "token=$(curl -sf -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' http://imds/api)",
        'curl -H "X-aws-ec2-metadata-token: $token" http://imds/latest/meta-data/instance-id',
        "PASSWORD=`aws secretsmanager get-secret-value --secret-id db`",
        "/etc/eks/bootstrap.sh analytics --b64-cluster-ca LS0tLS1CRUdJTg==",
    ],
)
def test_values_that_are_looked_up_at_boot_are_no_secrets(text: str) -> None:
    """A fleet whose nodes ask IMDS for a session token could not be imported."""
    assert not holds_secret(f"#!/bin/bash\n{text}\n")


@pytest.mark.parametrize(
    "text",
    [
        "DB_PASSWORD=hunter2hunter2",
        "export API_TOKEN='0123456789abcdef'",
        "curl https://user:hunter2@example.org/agent",
        "aws configure set aws_access_key_id AKIAIOSFODNN7EXAMPLE",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_literal_secrets_are_found(text: str) -> None:
    """A secret would be committed in plain text, and read by everybody who plans."""
    assert holds_secret(f"#!/bin/bash\n{text}\n")
