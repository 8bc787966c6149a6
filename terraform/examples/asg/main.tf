# Managed node groups instead of fleets: scaled from zero, with taints, labels and the node-template tags on their Auto
# Scaling groups. The sector config names each group (`provider: asg`, `auto_scaling_group`).
provider "aws" {
  region = var.region
}

module "node_group" {
  source   = "../../node_group"
  for_each = var.node_groups

  cluster_name   = var.cluster_name
  node_role_arn  = var.node_role_arn
  subnet_ids     = var.subnet_ids
  sector_label   = each.value.sector_label
  node_pool_size = each.value.node_pool_size
  node_pool_kind = each.value.node_pool_kind
  instance_types = each.value.instance_types
  spot           = each.value.spot
  min_size       = 0
  max_size       = each.value.max_size
  node_labels    = each.value.node_labels
  node_taints    = each.value.node_taints
}
