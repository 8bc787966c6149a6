"""Instances become nodes: what the AMI's boot, the kubelet and the cloud controller do.

Instances are watched through the emulated AWS's control API; nodes are written to the cluster
through the official client, so that a cluster of any make can be joined.
"""

from reconciler.sandbox.joiner.joiner import Joiner, JoinerSettings

__all__ = ["Joiner", "JoinerSettings"]
