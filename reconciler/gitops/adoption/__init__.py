"""Adopting fleets and groups that exist: a sector config and import blocks, made from them."""
