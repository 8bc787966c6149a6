"""What the program needs from the outside world, in the words of the domain.

Each port is a Protocol whose docstrings state guarantees and errors; adapters implement ports and
decide nothing.
"""
