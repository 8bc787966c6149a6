"""Applying an approved plan beside a running capacity loop, and what an apply has to leave alone."""
