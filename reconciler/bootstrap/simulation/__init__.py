"""Demand that is recorded, and simulations and sweeps over it."""
