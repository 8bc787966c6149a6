# How a fleet, or a group in its place, is named and tagged, and where it launches.
locals {
  fleet_name = join("-", compact([
    var.sector_label, var.node_pool_size, var.zone, var.lifecycle_in_name ? (var.spot ? "spot" : "on-demand") : "",
  ]))

  own_tags = {
    "Name"                                      = "${var.cluster_name}-${local.fleet_name}"
    "Spot"                                      = tostring(var.spot)
    "cluster"                                   = var.cluster_name
    "fleet"                                     = local.fleet_name
    "kind"                                      = var.node_pool_kind
    "kubernetes.io/cluster/${var.cluster_name}" = "owned"
    "sector"                                    = var.sector_label
    "size"                                      = var.node_pool_size
  }
  tags = tomap(merge(var.tags, local.own_tags))

  subnet_ids = [
    for zone, subnet_id in local.subnet_of_zone : subnet_id if var.zone == "" || zone == var.zone
  ]
}
