"""The second loop: from a sector config to reviewed Terraform. Nothing here talks to AWS itself."""
