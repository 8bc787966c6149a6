# Rendered by `reconciler render` from templates/root/versions.tf.j2; change the sector config, not this file.
terraform {
  required_version = ">= 1.9"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.100, < 7"
    }
  }
}
