# Rendered by `reconciler render` from templates/root/versions.tf.j2; change the sector config, not this file.
terraform {
  required_version = ">= 1.10"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.100, < 7"
    }
  }

  backend "s3" {
    bucket       = "states"
    encrypt      = true
    key          = "odd $${path.root} \"key\".tfstate"
    region       = "us-west-2"
    use_lockfile = true
  }
}
