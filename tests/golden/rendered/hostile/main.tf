# Rendered by `reconciler render` from templates/root/main.tf.j2; change the sector config, not this file.
provider "aws" {
  region = "us-west-2"
}

module "fleets" {
  source = "./modules/fleets"

  cluster_name = var.cluster_name
  fleets       = var.fleets
}
