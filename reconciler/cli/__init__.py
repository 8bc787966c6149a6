"""The command line: one file per command, found by its name in `commands.COMMANDS`.

What several commands share is in `options` and `terminal`; how they show things is in `views`.
"""
