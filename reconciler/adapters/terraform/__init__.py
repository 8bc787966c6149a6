"""Terraform's own program, called through python-terraform; saved plans only."""
