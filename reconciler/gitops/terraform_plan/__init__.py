"""What a Terraform plan would do: read, judged, bound to its inputs, described for reviewers."""
