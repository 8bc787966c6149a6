"""The second loop and its turns."""
