"""Nodes that may leave when others take their pods: idle, launching or new ones."""
