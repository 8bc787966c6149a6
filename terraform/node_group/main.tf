# An EKS managed node group that can be scaled from zero: its Auto Scaling group says in tags what a node of it will look
# like, which is not known otherwise while there is none.
locals {
  group_name = "${var.sector_label}-${var.node_pool_size}"

  node_labels = merge(var.node_labels, {
    sector    = var.sector_label
    fleet     = local.group_name
    size      = var.node_pool_size
    pool_size = var.node_pool_size
    lifecycle = var.spot ? "Ec2Spot" : "OnDemand"
  }, var.node_pool_kind == "" ? {} : { kind = var.node_pool_kind })

  # EKS has words of its own for Kubernetes' effects.
  effects = { NoSchedule = "NO_SCHEDULE", PreferNoSchedule = "PREFER_NO_SCHEDULE", NoExecute = "NO_EXECUTE" }

  template_prefix = "k8s.io/cluster-autoscaler/node-template"
  group_tags = merge(
    {
      "k8s.io/cluster-autoscaler/enabled"             = "true"
      "k8s.io/cluster-autoscaler/${var.cluster_name}" = "owned"
    },
    { for key, value in local.node_labels : "${local.template_prefix}/label/${key}" => value },
    { for taint in var.node_taints : "${local.template_prefix}/taint/${taint.key}" => "${taint.value}:${taint.effect}" },
  )
}

resource "aws_eks_node_group" "this" {
  cluster_name    = var.cluster_name
  node_group_name = local.group_name
  node_role_arn   = var.node_role_arn
  subnet_ids      = var.subnet_ids
  instance_types  = var.instance_types
  capacity_type   = var.spot ? "SPOT" : "ON_DEMAND"
  labels          = local.node_labels
  tags            = var.tags

  scaling_config {
    desired_size = var.min_size
    min_size     = var.min_size
    max_size     = var.max_size
  }

  # While EKS replaces nodes, for a new version or image.
  update_config {
    max_unavailable_percentage = var.max_unavailable_percentage
  }

  dynamic "taint" {
    for_each = var.node_taints
    content {
      key    = taint.value.key
      value  = taint.value.value
      effect = local.effects[taint.value.effect]
    }
  }

  lifecycle {
    ignore_changes = [
      # The capacity loop's field.
      scaling_config[0].desired_size,
    ]
  }
}

resource "aws_autoscaling_group_tag" "this" {
  for_each = local.group_tags

  autoscaling_group_name = aws_eks_node_group.this.resources[0].autoscaling_groups[0].name

  tag {
    key                 = each.key
    value               = each.value
    propagate_at_launch = false
  }
}
