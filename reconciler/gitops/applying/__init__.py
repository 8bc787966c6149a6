"""Applies an approved plan while the capacity loop is running; what an apply leaves unchanged."""
