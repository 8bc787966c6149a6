"""The config repository over GitPython and the git program; no work tree, no hooks, no prompts."""

import os

# GitPython looks for git when it is imported, and would fail there without one; each of our calls
# reports that itself.
os.environ["GIT_PYTHON_REFRESH"] = "quiet"  # noqa: TID251 - GitPython has no other setting for it
