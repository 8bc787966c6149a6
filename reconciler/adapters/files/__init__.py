"""Offline planning: cluster and cloud from files."""

from reconciler.adapters.files.cloud import UNSTATED, CloudFiles, FileCloud
from reconciler.adapters.files.cluster import FileCluster

__all__ = ["UNSTATED", "CloudFiles", "FileCloud", "FileCluster"]
