"""What a Terraform plan would do, judged and described."""
