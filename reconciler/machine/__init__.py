"""What the program does with the machine that it runs on: files, folders, time limits, memory.

Nothing here knows anything of clusters; every other package may use it.
"""
