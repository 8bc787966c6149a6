"""What the second loop proposes to the config repository, and what it follows."""
