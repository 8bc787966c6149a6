"""Disruption: what keeps nodes, what moves cost, what is tainted softly."""
