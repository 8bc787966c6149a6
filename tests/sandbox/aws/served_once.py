"""Imported by the fork server: one AWS has served here, so that moto has read its files."""

from reconciler.sandbox.aws.bootstrap import bootstrap_account
from reconciler.sandbox.aws.server import AwsServer

with AwsServer() as _server:
    bootstrap_account(_server.url)
