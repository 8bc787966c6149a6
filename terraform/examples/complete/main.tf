# A cluster from nothing: network, EKS, what the reconciler needs, a first fleet. Apply it, then
#
#   terraform output -raw sector_config > sectors.yaml
#   reconciler manifest --config sectors.yaml --sector primary --identity irsa=$(terraform output -raw role_arn) \
#     --image … | kubectl apply --server-side -f -
#
# and put sectors.yaml into the config repository: all fleets come from it then, through the second loop. The first fleet
# is made here because the add-ons need a node to run on. The config names it too, and the pipeline's first plan finds it
# in EC2 and takes it into the state of the config repository (`fleet/left-behind`). After that apply take it out of this
# one, so that it has one owner: remove `module "fleets"` and its output, and run `terraform state rm module.fleets`.
provider "aws" {
  region = var.region
}

data "aws_availability_zones" "available" {
  state = "available"

  # Local Zones have neither NAT gateways nor most instance types.
  filter {
    name   = "opt-in-status"
    values = ["opt-in-not-required"]
  }
}

locals {
  zone_names = data.aws_availability_zones.available.names
  zones      = slice(local.zone_names, 0, min(3, length(local.zone_names)))

  # The same for the fleet here and in the sector config, so that handing it over changes nothing.
  fleet_variables = {
    ami                   = var.ami
    security_group_id     = module.cluster.security_group_id
    private_subnet_ids    = module.network.private_subnet_ids
    instance_profile_name = module.cluster.instance_profile_name
  }
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
    primary-small = merge(local.fleet_variables, {
      sector_label       = "primary"
      node_pool_size     = "small"
      node_pool_kind     = "memory"
      spot               = false
      initial_node_count = 2
    })
  }
}
