"""Applying an approved plan beside a running capacity loop, and what an apply leaves alone."""
