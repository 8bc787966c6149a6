"""What leaves the program for people: log events, metric names, and what must never be in them."""
