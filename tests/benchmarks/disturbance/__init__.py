"""What is disturbed for the sake of cost: twelve minutes of work in virtual time."""
