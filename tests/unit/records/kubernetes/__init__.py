"""Tests of what is decoded from Kubernetes."""
