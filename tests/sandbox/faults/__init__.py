"""The program on bad days: faults of a script over real HTTP, and what it does about them."""
