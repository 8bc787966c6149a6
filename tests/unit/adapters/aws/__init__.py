"""Tests of the AWS adapters."""
