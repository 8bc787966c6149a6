# A cluster from nothing: network, EKS, what the reconciler needs, a first fleet. Apply it, then install the reconciler:
#
#   reconciler manifest --config sectors.yaml --sector primary --identity irsa=$(terraform output -raw role_arn) \
#     --image … | kubectl apply --server-side -f -
#
# Later fleets come from the sector config through the second loop; the one here gives the reconciler a node to run on.
provider "aws" {
  region = var.region
}

data "aws_availability_zones" "available" {
  state = "available"
}

locals {
  zones = slice(data.aws_availability_zones.available.names, 0, 3)
}

module "network" {
  source = "./modules/network"

  name  = var.cluster_name
  zones = local.zones
}

module "cluster" {
  source = "./modules/cluster"

  cluster_name       = var.cluster_name
  kubernetes_version = var.kubernetes_version
  subnet_ids         = values(module.network.private_subnet_ids)
}

module "reconciler" {
  source = "../../reconciler"

  cluster_name              = var.cluster_name
  cluster_oidc_provider_arn = module.cluster.oidc_provider_arn
  node_role_arn             = module.cluster.node_role_arn
}

module "fleets" {
  source = "../../fleets"

  cluster_name = var.cluster_name
  fleets = {
    primary-small = {
      sector_label          = "primary"
      node_pool_size        = "small"
      node_pool_kind        = "memory"
      spot                  = false
      initial_node_count    = 2
      ami                   = var.ami
      security_group_id     = module.cluster.security_group_id
      private_subnet_ids    = module.network.private_subnet_ids
      instance_profile_name = module.cluster.instance_profile_name
    }
  }
}
