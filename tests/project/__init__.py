"""The project itself: import contracts that bite, a tidy tree, a wheel that runs anywhere."""
