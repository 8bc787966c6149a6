"""Offline planning: cluster and cloud from files."""

from reconciler.adapters.files.cloud import FileCloud, open_cloud
from reconciler.adapters.files.cluster import FileCluster

__all__ = ["FileCloud", "FileCluster", "open_cloud"]
