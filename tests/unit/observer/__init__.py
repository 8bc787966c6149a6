"""Observation: what several answers add up to."""
