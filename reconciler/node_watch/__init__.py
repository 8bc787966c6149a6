"""The node watch: reads instance metadata on a node and writes what EC2 announces onto the node.

A small program beside the capacity loop, run on every spot node. It imports the model and the
standard library only: the planner, boto3 and the Kubernetes client would take ten times the
memory of everything that it does.
"""
