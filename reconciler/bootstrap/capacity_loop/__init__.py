"""The capacity loop over a live cluster: its config, its lead, its reporters, and how it ends."""
