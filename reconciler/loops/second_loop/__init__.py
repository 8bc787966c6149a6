"""The second loop: one turn over a config repository, and how fast and how far its turns go."""
