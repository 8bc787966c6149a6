"""Recorded demand, written to a directory, a bucket of S3 or one file, and read back."""

from reconciler.adapters.recording.bucket import BucketLog, fetch_days, place_in_s3, s3_client
from reconciler.adapters.recording.directory import DirectoryLog

__all__ = ["BucketLog", "DirectoryLog", "fetch_days", "place_in_s3", "s3_client"]
