"""How much a move or a replacement must save before it is made."""

from reconciler.planner.money import NANO

SAVING_PERCENT_MIN = 5
SAVING_NANO_USD_MIN = NANO // 100
"""A move that is to save money saves at least 5 %.

Sets of nodes, and headroom, save at least a cent an hour as well.
"""
