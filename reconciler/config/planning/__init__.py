"""Converts a sector config into the planner's settings; `settings` is the entry."""
