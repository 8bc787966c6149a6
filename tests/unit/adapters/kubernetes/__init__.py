"""Tests of the Kubernetes adapter."""
