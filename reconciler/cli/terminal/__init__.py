"""What every command writes to, and reads from, a terminal or a pipe."""
