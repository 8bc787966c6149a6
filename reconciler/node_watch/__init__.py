"""The node watch: reads instance metadata on a node and writes what EC2 announces onto the node.

It is a small separate program that runs on every spot node. It imports the model and the standard
library only: the planner, boto3 and the Kubernetes client would take ten times as much memory.
"""
