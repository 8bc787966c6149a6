"""What the eks_fleet module and `terraform plan` would refuse of a sector config.

The rules are those of the module's validation blocks and preconditions. A generated test compares
both directions with Terraform.
"""
