"""What the program needs in a cluster and in an AWS account, made from a sector config; pure."""
