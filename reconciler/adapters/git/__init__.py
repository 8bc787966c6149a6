"""The config repository over GitPython and the git program; no work tree, no hooks, no prompts."""

import os

# GitPython looks for git when it is imported, and would end there without one; each of our calls
# says so itself.
os.environ["GIT_PYTHON_REFRESH"] = "quiet"  # noqa: TID251 - GitPython is told in no other way
