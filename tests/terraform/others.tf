# Fleets as Terraform roots of other projects make them; see test_adopted_fleets.py.
terraform {
  required_providers {
    aws = { source = "hashicorp/aws" }
  }
}

provider "aws" {
  region = "us-west-2"
}

variable "ami" { type = string }
variable "security_group" { type = string }
variable "subnets" { type = map(string) }

# In the form of the module that Kluster Fleet Manager publishes: AL2, a price for each type, version numbers.
locals {
  pools = {
    small  = { spot = true, taints = "", prices = { "r4.xlarge" = "0.266", "r5.xlarge" = "0.252", "m5.2xlarge" = "0.384", "m4.2xlarge" = "0.400" } }
    medium = { spot = false, taints = "--register-with-taints=dedicated=batch:NoSchedule", prices = { "m5.4xlarge" = "0.768", "r5.2xlarge" = "0.504", "r4.2xlarge" = "0.532", "m4.4xlarge" = "0.800" } }
  }
  pool_tags = {
    for size in keys(local.pools) : size => {
      cluster = "analytics", fleet = "primary-${size}", sector = "primary", size = size, kind = "memory", team = "data"
    }
  }
}

resource "aws_launch_template" "pool" {
  for_each                             = local.pools
  name                                 = "analytics-primary-${each.key}"
  image_id                             = var.ami
  instance_initiated_shutdown_behavior = "terminate"
  key_name                             = "ops"
  vpc_security_group_ids               = [var.security_group]
  user_data = base64encode(join("\n", [
    "#!/bin/bash", "set -o xtrace", "/etc/eks/bootstrap.sh analytics \\", "  --kubelet-extra-args \\",
    "  '--node-labels=lifecycle=${each.value.spot ? "Ec2Spot" : "OnDemand"},sector=primary,fleet=primary-${each.key},pool_size=${each.key},kind=memory ${each.value.taints}'", "",
  ]))
  iam_instance_profile { name = "node" }
  block_device_mappings {
    device_name = "/dev/xvda"
    ebs {
      volume_size           = 20
      volume_type           = "gp2"
      delete_on_termination = true
    }
  }
  tags = merge(local.pool_tags[each.key], { name = "analytics-primary-${each.key}", managed = "terraform" })
  tag_specifications {
    resource_type = "instance"
    tags = merge(local.pool_tags[each.key], {
      Name = "analytics-primary-${each.key}", Spot = true, "kubernetes.io/cluster/analytics" = "owned"
    })
  }
}

resource "aws_ec2_fleet" "pool" {
  for_each                           = local.pools
  type                               = "maintain"
  excess_capacity_termination_policy = "no-termination"
  replace_unhealthy_instances        = true
  terminate_instances                = true
  spot_options {
    allocation_strategy         = "lowestPrice"
    instance_pools_to_use_count = 2
  }
  target_capacity_specification {
    default_target_capacity_type = each.value.spot ? "spot" : "on-demand"
    total_target_capacity        = 3
  }
  launch_template_config {
    launch_template_specification {
      launch_template_id = aws_launch_template.pool[each.key].id
      version            = aws_launch_template.pool[each.key].latest_version
    }
    dynamic "override" {
      for_each = { for pair in setproduct(keys(var.subnets), keys(each.value.prices)) : join("-", pair) => pair }
      content {
        availability_zone = override.value[0]
        subnet_id         = var.subnets[override.value[0]]
        instance_type     = override.value[1]
        max_price         = each.value.prices[override.value[1]]
        weighted_capacity = 1
        priority          = 0
      }
    }
  }
  tags = merge(local.pool_tags[each.key], {
    Name = "analytics-primary-${each.key}", name = "analytics-primary-${each.key}", managed = "terraform"
  })
}

# A root of one's own, as people write it from the provider's examples.
resource "aws_launch_template" "web" {
  name_prefix   = "web-"
  description   = "web nodes"
  image_id      = var.ami
  ebs_optimized = true
  user_data = base64encode(<<-EOT
    MIME-Version: 1.0
    Content-Type: multipart/mixed; boundary="//"

    --//
    Content-Type: application/node.eks.aws

    ---
    apiVersion: node.eks.aws/v1alpha1
    kind: NodeConfig
    spec:
      cluster: {name: analytics, apiServerEndpoint: "https://api.example", certificateAuthority: Q0E=, cidr: 10.100.0.0/16}
      kubelet:
        flags: ["--node-labels=sector=web,size=wide"]
    --//--
  EOT
  )
  iam_instance_profile { arn = "arn:aws:iam::123456789012:instance-profile/web" }
  network_interfaces {
    device_index                = 0
    associate_public_ip_address = true
    delete_on_termination       = true
    security_groups             = [var.security_group]
  }
  block_device_mappings {
    device_name = "/dev/xvda"
    ebs {
      volume_size           = 80
      volume_type           = "gp3"
      iops                  = 4000
      throughput            = 250
      encrypted             = true
      delete_on_termination = true
    }
  }
  metadata_options {
    http_tokens                 = "required"
    http_endpoint               = "enabled"
    http_put_response_hop_limit = 2
  }
  monitoring { enabled = true }
  placement { tenancy = "default" }
  tag_specifications {
    resource_type = "volume"
    tags          = { team = "web" }
  }
  tag_specifications {
    resource_type = "instance"
    tags          = { team = "web", cluster = "analytics" }
  }
}

resource "aws_ec2_fleet" "web" {
  launch_template_config {
    launch_template_specification {
      launch_template_id = aws_launch_template.web.id
      version            = "$Default"
    }
    override {
      instance_type = "m6i.large"
      subnet_id     = values(var.subnets)[1]
      max_price     = "0.050"
    }
    override {
      instance_type = "m5.large"
      subnet_id     = values(var.subnets)[0]
    }
  }
  spot_options { allocation_strategy = "diversified" }
  target_capacity_specification {
    default_target_capacity_type = "spot"
    total_target_capacity        = 2
  }
  tags = { cluster = "analytics", sector = "web", size = "wide", kind = "memory", min_capacity = "1", max_capacity = "7" }
}
