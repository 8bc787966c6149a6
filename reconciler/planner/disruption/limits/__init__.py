"""Limits on all disruptions together: budgets, blast radius, minima, the safety stop."""
