"""One planning cycle, from files or from the live APIs, and the clouds that it observes."""
