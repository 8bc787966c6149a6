"""The second loop, by itself or as a child process of the capacity loop that reports to it."""
