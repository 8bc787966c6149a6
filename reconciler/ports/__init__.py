"""What the program needs of the outside world, in the words of the domain.

Each port is a Protocol whose docstrings state guarantees and errors; adapters implement them and
decide nothing.
"""
