"""Carrying a plan out: in order, each action checked against the live object first."""
