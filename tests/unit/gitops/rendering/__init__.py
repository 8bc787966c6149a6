"""From a sector config to the files of a root module."""
