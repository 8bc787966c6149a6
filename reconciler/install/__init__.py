"""What the program needs in a cluster and in an AWS account to run: pure, from a sector config."""
