"""Tests of `reconciler import` from files."""
