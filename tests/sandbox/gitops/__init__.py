"""The second loop over real git and real Terraform."""
