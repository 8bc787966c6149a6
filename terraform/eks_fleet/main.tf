# One EC2 Fleet of Kubernetes nodes and the launch template its instances are made from.
# What the fleet is belongs to Terraform; how big it is belongs to the capacity loop.
locals {
  # Read by the files that eks_group shares, which has other values for them.
  default_template_name = "${var.cluster_name}-${local.fleet_name}"
  overrides_given       = var.overrides != null
  # EC2 resolves a parameter that names the image for fleets of type instant only (API reference of
  # RequestLaunchTemplateData).
  image_parameters_taken = false

  overrides = var.overrides != null ? var.overrides : tolist([
    for pair in setproduct(local.instance_types, local.subnet_ids) : {
      instance_type     = pair[0]
      subnet_id         = pair[1]
      availability_zone = null
      max_price         = try(var.max_prices[pair[0]], var.max_price)
      priority          = null
      weighted_capacity = null
    }
  ])
  fleet_tags = var.fleet_tags != null ? var.fleet_tags : local.tags
}

resource "aws_ec2_fleet" "this" {
  type                               = "maintain"
  excess_capacity_termination_policy = "no-termination"
  # The capacity loop replaces a sick node after draining it; EC2 would end it with its pods.
  replace_unhealthy_instances = false
  # Whatever ends this fleet must leave its nodes running: they are drained by the capacity loop, never dropped.
  terminate_instances                 = false
  terminate_instances_with_expiration = false

  launch_template_config {
    launch_template_specification {
      launch_template_id   = var.launch_template_by_name ? null : aws_launch_template.this.id
      launch_template_name = var.launch_template_by_name ? aws_launch_template.this.name : null
      # Not the template's own latest number: the provider would modify the fleet, total capacity included, at each
      # new version.
      version = var.launch_template_version
    }

    dynamic "override" {
      for_each = local.overrides
      content {
        instance_type     = override.value.instance_type
        subnet_id         = override.value.subnet_id
        availability_zone = override.value.availability_zone
        max_price         = override.value.max_price
        priority          = override.value.priority
        weighted_capacity = override.value.weighted_capacity
      }
    }
  }

  dynamic "spot_options" {
    for_each = var.spot ? [var.spot_allocation_strategy] : []
    content {
      allocation_strategy            = spot_options.value
      instance_interruption_behavior = "terminate"
    }
  }

  dynamic "on_demand_options" {
    for_each = var.spot ? [] : ["lowestPrice"]
    content {
      allocation_strategy = on_demand_options.value
    }
  }

  target_capacity_specification {
    default_target_capacity_type = var.spot ? "spot" : "on-demand"
    total_target_capacity        = var.initial_node_count
  }

  tags = local.fleet_tags

  lifecycle {
    # Where EC2 cannot change a living fleet (spot and on-demand), the new one is there before the
    # old one goes: if it cannot be made, the old one is still there to take its nodes back.
    create_before_destroy = true

    ignore_changes = [
      # The capacity loop's field. EC2 answers with the two parts as well, and the provider replaces for those.
      target_capacity_specification[0].total_target_capacity,
      target_capacity_specification[0].on_demand_target_capacity,
      target_capacity_specification[0].spot_target_capacity,
      target_capacity_specification[0].target_capacity_unit_type,
      # EC2 cannot change these on a living fleet, answers with more or less than was asked
      # (instance_pools_to_use_count above all), and the provider would replace the fleet for each difference.
      spot_options,
      on_demand_options,
      replace_unhealthy_instances,
      terminate_instances_with_expiration,
      context,
      valid_from,
      valid_until,
      # The capacity loop sends no-termination with each of its changes, so an imported fleet has it from the first on.
      excess_capacity_termination_policy,
      # The template is named by its id; EC2 may add the name to its answer.
      launch_template_config[0].launch_template_specification[0].launch_template_name,
    ]

    precondition {
      condition     = (length(local.overrides) >= 1 || var.overrides != null) && length(local.overrides) <= 300
      error_message = "fleet ${local.fleet_name} has ${length(local.overrides)} overrides (instance types times subnets); EC2 takes 1 to 300."
    }
  }
}

check "spot_allocation_strategy_in_force" {
  assert {
    condition = alltrue([
      for options in aws_ec2_fleet.this.spot_options : options.allocation_strategy == var.spot_allocation_strategy
    ]) || !var.spot
    error_message = "spot_allocation_strategy of fleet ${local.fleet_name} is not the one it was created with; EC2 cannot change it on a living fleet, a new fleet will have it."
  }
}
