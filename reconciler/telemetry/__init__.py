"""What the program says about itself: names of events and metrics, logging, repeats, secrets."""
