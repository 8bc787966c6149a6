"""One planning cycle, and the clouds that it observes."""
