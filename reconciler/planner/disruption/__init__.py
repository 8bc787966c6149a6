"""The disruption engine: every reason to take pods off a node, or to end it.

Start at `engine.py`.
"""
