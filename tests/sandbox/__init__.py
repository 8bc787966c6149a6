"""The program over loopback AWS, Terraform and git."""
