"""Demand that is recorded for simulations."""
