"""Tests of what is decoded from AWS."""
