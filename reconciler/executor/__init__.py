"""Executes a plan in order; each action is checked against the live object first."""
