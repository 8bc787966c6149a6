"""Headroom: what a config asks for, in which pieces, and on which rows they may be placed."""
