"""Where config, Terraform's state and EC2 differ: in a pipeline's report, and in every cycle."""
