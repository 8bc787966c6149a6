"""Tests of the node watch."""
