# The launch template that a fleet's instances are made from.
locals {
  # Bottlerocket keeps its system on xvda and everything of the node's on xvdb.
  data_device_name = var.ami_type == "BOTTLEROCKET" ? "/dev/xvdb" : "/dev/xvda"

  volumes = var.volumes != null ? var.volumes : tolist([{
    device_name           = local.data_device_name
    size                  = var.ebs_size
    type                  = var.ebs_type
    iops                  = var.ebs_iops
    throughput            = var.ebs_throughput
    encrypted             = var.ebs_encrypted
    kms_key_id            = var.ebs_kms_key_id == "" ? null : var.ebs_kms_key_id
    snapshot_id           = null
    delete_on_termination = true
  }])

  metadata_options = var.metadata_options != null ? var.metadata_options : {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = var.metadata_hop_limit
    http_protocol_ipv6          = null
    # Tags in instance metadata forbid "/" in tag keys, and the cluster's own tag has two.
    instance_metadata_tags = "disabled"
  }
  metadata_options_stated = anytrue([for value in values(local.metadata_options) : value != null])

  security_group_ids = (
    length(var.network_interfaces) > 0 ? [] :
    length(var.security_group_tags) > 0 ? local.tagged_security_groups :
    var.security_group_ids != null ? var.security_group_ids : [var.security_group_id]
  )
  instance_profile_stated = var.instance_profile_name != "" || var.instance_profile_arn != ""

  tag_specifications = var.tag_specifications != null ? var.tag_specifications : tolist([
    { resource_type = "instance", tags = local.tags },
    { resource_type = "volume", tags = local.tags },
  ])
  launch_template_tags = var.launch_template_tags != null ? var.launch_template_tags : local.tags
  launch_template_name = var.launch_template_name != "" ? var.launch_template_name : local.default_template_name
  launch_template_description = (
    var.launch_template_description != null ? var.launch_template_description
    : "Nodes of fleet ${local.fleet_name} in cluster ${var.cluster_name}"
  )
}

resource "aws_launch_template" "this" {
  name                   = local.launch_template_name
  description            = local.launch_template_description
  update_default_version = true

  image_id                             = local.image_id
  instance_type                        = var.launch_template_instance_type == "" ? null : var.launch_template_instance_type
  key_name                             = var.ssh_key_name == "" ? null : var.ssh_key_name
  user_data                            = local.user_data_base64 == "" ? null : local.user_data_base64
  vpc_security_group_ids               = length(local.security_group_ids) == 0 ? null : local.security_group_ids
  ebs_optimized                        = var.ebs_optimized
  instance_initiated_shutdown_behavior = var.instance_initiated_shutdown_behavior == "" ? null : var.instance_initiated_shutdown_behavior

  dynamic "block_device_mappings" {
    for_each = local.volumes
    iterator = volume
    content {
      device_name = volume.value.device_name

      ebs {
        volume_size           = volume.value.size
        volume_type           = volume.value.type
        iops                  = volume.value.iops
        throughput            = volume.value.throughput
        encrypted             = volume.value.encrypted
        kms_key_id            = volume.value.kms_key_id
        snapshot_id           = volume.value.snapshot_id
        delete_on_termination = volume.value.delete_on_termination
      }
    }
  }

  dynamic "credit_specification" {
    for_each = var.cpu_credits == "" ? [] : [var.cpu_credits]
    content {
      cpu_credits = credit_specification.value
    }
  }

  dynamic "iam_instance_profile" {
    for_each = local.instance_profile_stated ? [1] : []
    content {
      arn  = var.instance_profile_arn == "" ? null : var.instance_profile_arn
      name = var.instance_profile_name == "" ? null : var.instance_profile_name
    }
  }

  dynamic "metadata_options" {
    for_each = local.metadata_options_stated ? [local.metadata_options] : []
    content {
      http_endpoint               = metadata_options.value.http_endpoint
      http_tokens                 = metadata_options.value.http_tokens
      http_put_response_hop_limit = metadata_options.value.http_put_response_hop_limit
      http_protocol_ipv6          = metadata_options.value.http_protocol_ipv6
      instance_metadata_tags      = metadata_options.value.instance_metadata_tags
    }
  }

  dynamic "monitoring" {
    for_each = var.monitoring == null ? [] : [var.monitoring]
    content {
      enabled = monitoring.value
    }
  }

  dynamic "network_interfaces" {
    for_each = var.network_interfaces
    iterator = interface
    content {
      device_index                = interface.value.device_index
      network_card_index          = interface.value.network_card_index
      interface_type              = interface.value.interface_type
      description                 = interface.value.description
      subnet_id                   = interface.value.subnet_id
      security_groups             = interface.value.security_groups
      associate_public_ip_address = interface.value.associate_public_ip_address
      delete_on_termination       = interface.value.delete_on_termination
      ipv4_prefix_count           = interface.value.ipv4_prefix_count
      ipv6_prefix_count           = interface.value.ipv6_prefix_count
      ipv4_address_count          = interface.value.ipv4_address_count
      ipv6_address_count          = interface.value.ipv6_address_count
    }
  }

  dynamic "placement" {
    for_each = var.placement == null ? [] : [var.placement]
    content {
      affinity                = placement.value.affinity
      availability_zone       = placement.value.availability_zone
      group_name              = placement.value.group_name
      host_id                 = placement.value.host_id
      host_resource_group_arn = placement.value.host_resource_group_arn
      partition_number        = placement.value.partition_number
      tenancy                 = placement.value.tenancy
    }
  }

  dynamic "tag_specifications" {
    for_each = local.tag_specifications
    content {
      resource_type = tag_specifications.value.resource_type
      tags          = tag_specifications.value.tags
    }
  }

  tags = local.launch_template_tags

  lifecycle {
    ignore_changes = [
      # Known to Terraform only: an imported template would show a change that EC2 never sees.
      # Fleets that name $Latest do not launch by it.
      update_default_version,
    ]

    precondition {
      condition     = length(local.zones_with_several_subnets) == 0
      error_message = "subnet_tags of fleet ${local.fleet_name} match several subnets of one zone (${join("; ", local.zones_with_several_subnets)}); EC2 takes one of a zone: name more tags."
    }

    precondition {
      condition     = length(var.subnet_tags) == 0 || length(local.subnet_ids) > 0
      error_message = "subnet_tags of fleet ${local.fleet_name} match no subnet${var.zone == "" ? "" : " of zone ${var.zone}"}."
    }

    precondition {
      condition     = length(var.security_group_tags) == 0 || length(local.tagged_security_groups) > 0
      error_message = "security_group_tags of fleet ${local.fleet_name} match no security group."
    }

    precondition {
      condition     = local.user_data_bytes <= 16384
      error_message = "user data of fleet ${local.fleet_name} is ${local.user_data_bytes} bytes; EC2 takes at most 16384 (fewer node_labels or node_taints)."
    }
  }
}
