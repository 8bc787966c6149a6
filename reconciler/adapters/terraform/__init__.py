"""Runs the Terraform program through python-terraform; saved plans only."""
