variable "cluster_name" {
  description = "Name of the EKS cluster. Value of tag `cluster`, part of kubernetes.io/cluster/<name>."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$", var.cluster_name))
    error_message = "cluster_name must be a label value: 1 to 63 letters, digits, '-', '_' or '.', a letter or digit at both ends."
  }
}

variable "fleets" {
  description = "The cluster's fleets by name (<sector>-<size>, then -<zone> and, with lifecycle_in_name, -spot or -on-demand). Each has the variables of eks_fleet but cluster_name or, with the name of an auto_scaling_group, those of eks_group; what is left out, or null, is their default."
  type = map(object({
    sector_label                       = string
    node_pool_size                     = string
    node_pool_kind                     = string
    zone                               = optional(string, "")
    spot                               = optional(bool)
    lifecycle_in_name                  = optional(bool, false)
    initial_node_count                 = optional(number)
    instance_types                     = optional(list(string), [])
    private_subnet_ids                 = optional(map(string), {})
    subnet_tags                        = optional(map(string))
    max_price                          = optional(string)
    spot_allocation_strategy           = optional(string)
    tags                               = optional(map(string), {})
    ami                                = optional(string, "")
    architecture                       = optional(string)
    kubernetes_version                 = optional(string)
    ami_type                           = optional(string)
    security_group_id                  = optional(string, "")
    security_group_tags                = optional(map(string))
    ssh_key_name                       = optional(string)
    instance_profile_name              = optional(string)
    metadata_hop_limit                 = optional(number)
    ebs_size                           = optional(number)
    ebs_type                           = optional(string)
    ebs_iops                           = optional(number)
    ebs_throughput                     = optional(number)
    ebs_encrypted                      = optional(bool)
    ebs_kms_key_id                     = optional(string)
    cluster_endpoint                   = optional(string)
    cluster_ca                         = optional(string)
    service_cidr                       = optional(string)
    max_pods                           = optional(number)
    kube_reserved                      = optional(map(string))
    system_reserved                    = optional(map(string))
    eviction_hard                      = optional(map(string))
    node_labels                        = optional(map(string))
    on_demand_prefer_no_schedule_taint = optional(bool)
    node_taints = optional(list(object({
      key    = string
      value  = optional(string, "")
      effect = string
    })))
    max_prices = optional(map(string))
    overrides = optional(list(object({
      instance_type     = optional(string)
      subnet_id         = optional(string)
      availability_zone = optional(string)
      max_price         = optional(string)
      priority          = optional(number)
      weighted_capacity = optional(number)
    })))
    fleet_tags                  = optional(map(string))
    launch_template_name        = optional(string)
    launch_template_by_name     = optional(bool)
    launch_template_version     = optional(string)
    launch_template_description = optional(string)
    launch_template_tags        = optional(map(string))
    tag_specifications = optional(list(object({
      resource_type = string
      tags          = optional(map(string), {})
    })))
    launch_template_instance_type = optional(string)
    instance_profile_arn          = optional(string)
    security_group_ids            = optional(list(string))
    network_interfaces = optional(list(object({
      device_index                = optional(number)
      network_card_index          = optional(number)
      interface_type              = optional(string)
      description                 = optional(string)
      subnet_id                   = optional(string)
      security_groups             = optional(list(string))
      associate_public_ip_address = optional(bool)
      delete_on_termination       = optional(bool)
      ipv4_prefix_count           = optional(number)
      ipv6_prefix_count           = optional(number)
      ipv4_address_count          = optional(number)
      ipv6_address_count          = optional(number)
    })))
    volumes = optional(list(object({
      device_name           = string
      size                  = optional(number)
      type                  = optional(string)
      iops                  = optional(number)
      throughput            = optional(number)
      encrypted             = optional(bool)
      kms_key_id            = optional(string)
      snapshot_id           = optional(string)
      delete_on_termination = optional(bool)
    })))
    metadata_options = optional(object({
      http_endpoint               = optional(string)
      http_tokens                 = optional(string)
      http_put_response_hop_limit = optional(number)
      http_protocol_ipv6          = optional(string)
      instance_metadata_tags      = optional(string)
    }))
    monitoring                           = optional(bool)
    ebs_optimized                        = optional(bool)
    cpu_credits                          = optional(string)
    instance_initiated_shutdown_behavior = optional(string)
    placement = optional(object({
      affinity                = optional(string)
      availability_zone       = optional(string)
      group_name              = optional(string)
      host_id                 = optional(string)
      host_resource_group_arn = optional(string)
      partition_number        = optional(number)
      tenancy                 = optional(string)
    }))
    user_data           = optional(string)
    bootstrap_arguments = optional(string)
    # Of an Auto Scaling group in the place of a fleet.
    auto_scaling_group                       = optional(string, "")
    max_size                                 = optional(number)
    mixed_instances_policy                   = optional(bool)
    on_demand_base_capacity                  = optional(number)
    on_demand_percentage_above_base_capacity = optional(number)
    node_resources                           = optional(map(string))
    group_tags = optional(list(object({
      key                 = string
      value               = string
      propagate_at_launch = optional(bool, false)
    })))
    # It only stays until its nodes are drained: `reconciler ci apply` sets this. It may divide its size by zone in
    # another way than the fleets that come in its place.
    departing = optional(bool, false)
  }))
  nullable = false

  validation {
    condition = alltrue([
      for name, fleet in var.fleets :
      name == join("-", compact([fleet.sector_label, fleet.node_pool_size, fleet.zone, fleet.lifecycle_in_name ? (fleet.spot == false ? "on-demand" : "spot") : ""]))
    ])
    error_message = "fleets must be named <sector_label>-<node_pool_size>, then -<zone> and, with lifecycle_in_name, -spot or -on-demand (${join(", ", [for name, fleet in var.fleets : name if name != join("-", compact([fleet.sector_label, fleet.node_pool_size, fleet.zone, fleet.lifecycle_in_name ? (fleet.spot == false ? "on-demand" : "spot") : ""]))])})."
  }

  validation {
    condition = length(distinct([
      for fleet in values(var.fleets) :
      "${fleet.sector_label}/${fleet.node_pool_size}/${fleet.zone}/${fleet.spot == false}" if !fleet.departing
    ])) == length([for fleet in values(var.fleets) : fleet if !fleet.departing])
    error_message = "fleets must have each sector_label, node_pool_size, zone and spot once."
  }

  validation {
    condition = alltrue([
      for fleet in values(var.fleets) : fleet.zone != "" || fleet.departing || length([
        for other in values(var.fleets) : other
        if other.sector_label == fleet.sector_label && other.node_pool_size == fleet.node_pool_size && !other.departing && ((other.spot == false) == (fleet.spot == false) || !(other.lifecycle_in_name || fleet.lifecycle_in_name))
      ]) == 1
    ])
    error_message = "fleets must not have the same sector_label, node_pool_size and spot both with and without zone (${join(", ", [
      for name, fleet in var.fleets : name if fleet.zone == "" && !fleet.departing && length([
        for other in values(var.fleets) : other
        if other.sector_label == fleet.sector_label && other.node_pool_size == fleet.node_pool_size && !other.departing && ((other.spot == false) == (fleet.spot == false) || !(other.lifecycle_in_name || fleet.lifecycle_in_name))
      ]) > 1
    ])}): the one without zone covers every zone."
  }

  validation {
    condition = length(distinct([
      for fleet in values(var.fleets) : "${fleet.sector_label}/${fleet.node_pool_kind}"
    ])) == length(distinct(values(var.fleets)[*].sector_label))
    error_message = "fleets of one sector_label must have one node_pool_kind (${join(", ", [
      for sector in distinct(values(var.fleets)[*].sector_label) : sector if length(distinct([
        for fleet in values(var.fleets) : fleet.node_pool_kind if fleet.sector_label == sector
      ])) > 1
    ])})."
  }

  validation {
    condition = alltrue([
      for fleet in values(var.fleets) :
      length(fleet.instance_types) > 0 || contains(["memory", "cpu"], fleet.node_pool_kind)
    ])
    error_message = "fleets must have the node_pool_kind memory or cpu; an own kind needs instance_types."
  }

  validation {
    condition = alltrue([
      for fleet in values(var.fleets) :
      length(fleet.instance_types) > 0 || contains(["xsmall", "small", "medium", "large", "xlarge"], fleet.node_pool_size)
    ])
    error_message = "fleets must have the node_pool_size xsmall, small, medium, large or xlarge; an own size needs instance_types."
  }

  validation {
    condition = alltrue([
      for fleet in values(var.fleets) :
      fleet.initial_node_count == null ? true : fleet.initial_node_count >= 0 && fleet.initial_node_count <= 10000
    ])
    error_message = "fleets must have an initial_node_count from 0 to 10000 (EC2's limit for one fleet)."
  }

  validation {
    condition = alltrue([
      for key in flatten([for fleet in values(var.fleets) : keys(fleet.tags)]) :
      !contains(["Name", "Spot", "cluster", "fleet", "kind", "managed", "name", "sector", "size", "kubernetes.io/cluster/${var.cluster_name}"], key)
    ])
    error_message = "fleets must not use reserved keys in tags (${join(", ", distinct(flatten([
      for name, fleet in var.fleets : [
        for key in keys(fleet.tags) : "${name}: ${key}" if contains(["Name", "Spot", "cluster", "fleet", "kind", "managed", "name", "sector", "size", "kubernetes.io/cluster/${var.cluster_name}"], key)
      ]
    ])))}): Name, Spot, cluster, fleet, kind, managed, name, sector, size and kubernetes.io/cluster/<cluster_name> are set by the module."
  }

  validation {
    condition = alltrue([
      for key in flatten([for fleet in values(var.fleets) : keys(fleet.tags)]) : !startswith(lower(key), "aws:")
    ])
    error_message = "fleets must not use keys that begin with aws: in tags (${join(", ", distinct(flatten([
      for name, fleet in var.fleets : [
        for key in keys(fleet.tags) : "${name}: ${key}" if startswith(lower(key), "aws:")
      ]
    ])))}); AWS reserves them."
  }

  validation {
    condition = length(distinct([
      for name, fleet in var.fleets :
      try(length(fleet.launch_template_name), 0) > 0 ? fleet.launch_template_name : "${var.cluster_name}-${name}${fleet.auto_scaling_group == "" ? "" : "-group"}" if !fleet.departing
    ])) == length([for fleet in values(var.fleets) : fleet if !fleet.departing])
    error_message = "fleets must not share a launch_template_name, nor have another fleet's default (<cluster_name>-<fleet name>, for a group with -group behind it): each has a launch template of its own."
  }

  validation {
    condition     = alltrue([for fleet in values(var.fleets) : length(fleet.tags) <= 42])
    error_message = "fleets may have at most 42 entries in tags (${join(", ", [for name, fleet in var.fleets : name if length(fleet.tags) > 42])}): EC2 takes 50 and the module sets 8."
  }
}
