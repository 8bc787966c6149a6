"""Adopts existing fleets and groups: makes a sector config and import blocks from them."""
