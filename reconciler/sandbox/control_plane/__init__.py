"""A real Kubernetes control plane on loopback: its programs, its certificates, its processes.

etcd, kube-apiserver, kube-controller-manager and kube-scheduler from one Go program of ours
(`programs/`), and KWOK in the place of kubelets. Linux only.
"""

from reconciler.sandbox.control_plane.binaries import build_binaries, find_binaries
from reconciler.sandbox.control_plane.plane import ControlPlane

__all__ = ["ControlPlane", "build_binaries", "find_binaries"]
