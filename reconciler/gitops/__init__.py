"""The second loop: turns a sector config into reviewed Terraform. Nothing here calls AWS itself."""
