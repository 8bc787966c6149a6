"""The config repository over GitPython and the git program; no work tree, no hooks, no prompts."""
