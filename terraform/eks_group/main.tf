# One Auto Scaling group of Kubernetes nodes and the launch template its instances are made from: what eks_fleet is for an
# EC2 Fleet, with the same variables of nodes and launch templates (the files that are links to eks_fleet's).
# What the group is belongs to Terraform; how big it is belongs to the capacity loop.
locals {
  # Read by the files that eks_fleet shares. The name differs from that of a fleet's template, so that a group can be made
  # while the fleet that it replaces is still there.
  default_template_name  = "${var.cluster_name}-${local.fleet_name}-group"
  overrides_given        = false
  image_parameters_taken = true

  # While a group has no node these tags say what a node of it will be, to Cluster Autoscaler too. EC2 takes keys of up to
  # 128 characters; a label whose tag would be longer is known from the sector config and from nodes.
  node_template = "k8s.io/cluster-autoscaler/node-template"
  node_template_tags = {
    for key, value in merge(
      { for key, value in local.node_labels : "${local.node_template}/label/${key}" => value },
      # The notation has one effect for a key.
      { for key in distinct(local.node_taints[*].key) :
        "${local.node_template}/taint/${key}" => [for taint in local.node_taints : "${taint.value}:${taint.effect}" if taint.key == key][0]
      },
      { for name, amount in var.node_resources : "${local.node_template}/resources/${name}" => amount },
    ) : key => value if length(key) <= 128
  }
  # The launch template gives instances their tags, so that these are the group's alone.
  own_group_tags = [
    for key, value in merge(local.node_template_tags, local.tags) : { key = key, value = value, propagate_at_launch = false }
  ]
  group_tags = var.group_tags != null ? var.group_tags : local.own_group_tags

  # Auto Scaling's words for the strategies of EC2 Fleet.
  spot_allocation_strategy = var.spot_allocation_strategy == "lowestPrice" ? "lowest-price" : var.spot_allocation_strategy
}

resource "aws_autoscaling_group" "this" {
  name                = var.group_name
  min_size            = 0
  max_size            = var.max_size
  desired_capacity    = var.initial_node_count
  vpc_zone_identifier = local.subnet_ids
  # Nodes come and go without Terraform, so that it waits for none.
  wait_for_capacity_timeout = "0"
  # AZRebalance ends instances that run pods, past PodDisruptionBudgets.
  suspended_processes = ["AZRebalance"]

  dynamic "launch_template" {
    for_each = var.mixed_instances_policy ? [] : [var.launch_template_version]
    content {
      id      = aws_launch_template.this.id
      version = launch_template.value
    }
  }

  dynamic "mixed_instances_policy" {
    for_each = var.mixed_instances_policy ? [var.launch_template_version] : []
    content {
      instances_distribution {
        on_demand_base_capacity                  = var.on_demand_base_capacity
        on_demand_percentage_above_base_capacity = var.spot ? var.on_demand_percentage_above_base_capacity : 100
        spot_allocation_strategy                 = local.spot_allocation_strategy
        spot_max_price                           = var.max_price
      }

      launch_template {
        launch_template_specification {
          launch_template_id = aws_launch_template.this.id
          # Not the template's own latest number: a new image would then be a change of the group as well.
          version = mixed_instances_policy.value
        }

        dynamic "override" {
          for_each = local.instance_types
          content {
            instance_type = override.value
          }
        }
      }
    }
  }

  dynamic "tag" {
    for_each = local.group_tags
    content {
      key                 = tag.value.key
      value               = tag.value.value
      propagate_at_launch = tag.value.propagate_at_launch
    }
  }

  lifecycle {
    ignore_changes = [
      # The capacity loop's field, and the minimum, which it keeps itself (min_capacity).
      desired_capacity,
      min_size,
      # Processes are suspended and resumed by people in an incident; a plan must not undo that.
      suspended_processes,
      # What this module has no variable for stays as whoever made the group has it.
      capacity_rebalance,
      default_cooldown,
      default_instance_warmup,
      enabled_metrics,
      health_check_grace_period,
      health_check_type,
      instance_maintenance_policy,
      max_instance_lifetime,
      metrics_granularity,
      placement_group,
      protect_from_scale_in,
      termination_policies,
      warm_pool,
      # Known to Terraform only: an imported group would show a change that Auto Scaling never sees.
      force_delete,
      force_delete_warm_pool,
      ignore_failed_scaling_activities,
      wait_for_capacity_timeout,
      # Auto Scaling answers with its defaults.
      capacity_reservation_specification,
      desired_capacity_type,
    ]

    precondition {
      condition     = length(local.group_tags) <= 50
      error_message = "group ${local.fleet_name} has ${length(local.group_tags)} tags, Auto Scaling takes 50: its nodes' labels and taints are tags too (fewer tags, node_labels or node_taints)."
    }
  }
}
