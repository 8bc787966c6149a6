# What a plan of one group says. The provider is a mock: no run here proves what Auto Scaling answers, nor that a plan after
# an apply is empty (the sandbox tests do).
mock_provider "aws" {}

variables {
  cluster_name          = "analytics"
  sector_label          = "primary"
  node_pool_size        = "small"
  node_pool_kind        = "memory"
  group_name            = "analytics-primary-small"
  ami                   = "ami-0123456789abcdef0"
  security_group_id     = "sg-0123456789abcdef0"
  instance_profile_name = "analytics-node"
  private_subnet_ids    = { us-west-2b = "subnet-0bb", us-west-2a = "subnet-0aa" }
  cluster_endpoint      = "https://0123.gr7.us-west-2.eks.amazonaws.com"
  cluster_ca            = "Q0E="
  service_cidr          = "10.100.0.0/16"
}

run "spot_group_that_scales_from_zero" {
  command = plan

  variables {
    initial_node_count = 2
    max_size           = 50
    node_labels        = { team = "data", (join("", concat([for i in range(80) : "p"], ["/long"]))) = "yes" }
    node_taints        = [{ key = "dedicated", value = "batch", effect = "NoSchedule" }, { key = "dedicated", value = "batch", effect = "NoExecute" }]
    node_resources     = { "nvidia.com/gpu" = "1" }
    tags               = { environment = "production" }
  }

  assert {
    condition = (
      aws_autoscaling_group.this.min_size == 0
      && aws_autoscaling_group.this.max_size == 50
      && aws_autoscaling_group.this.desired_capacity == 2
      && toset(aws_autoscaling_group.this.vpc_zone_identifier) == toset(["subnet-0aa", "subnet-0bb"])
      && aws_autoscaling_group.this.suspended_processes == toset(["AZRebalance"])
    )
    error_message = "the group is not sized and placed as the variables say"
  }

  assert {
    condition = output.tags == {
      Name                                                               = "analytics-primary-small"
      Spot                                                               = "true"
      cluster                                                            = "analytics"
      fleet                                                              = "primary-small"
      sector                                                             = "primary"
      kind                                                               = "memory"
      size                                                               = "small"
      environment                                                        = "production"
      "kubernetes.io/cluster/analytics"                                  = "owned"
      "k8s.io/cluster-autoscaler/node-template/label/fleet"              = "primary-small"
      "k8s.io/cluster-autoscaler/node-template/label/kind"               = "memory"
      "k8s.io/cluster-autoscaler/node-template/label/lifecycle"          = "Ec2Spot"
      "k8s.io/cluster-autoscaler/node-template/label/pool_size"          = "small"
      "k8s.io/cluster-autoscaler/node-template/label/sector"             = "primary"
      "k8s.io/cluster-autoscaler/node-template/label/size"               = "small"
      "k8s.io/cluster-autoscaler/node-template/label/team"               = "data"
      "k8s.io/cluster-autoscaler/node-template/taint/dedicated"          = "batch:NoSchedule"
      "k8s.io/cluster-autoscaler/node-template/resources/nvidia.com/gpu" = "1"
    }
    error_message = "the tags are not those of the contract, or do not describe a node of the empty group"
  }

  assert {
    condition     = toset([for tag in aws_autoscaling_group.this.tag : "${tag.key}=${tag.value}"]) == toset([for key, value in output.tags : "${key}=${value}"])
    error_message = "the group does not carry the tags"
  }

  assert {
    condition     = !anytrue([for tag in aws_autoscaling_group.this.tag : tag.propagate_at_launch])
    error_message = "the launch template tags instances; 18 more tags of each would be too many"
  }

  assert {
    condition = tomap({
      for specification in aws_launch_template.this.tag_specifications : specification.resource_type => specification.tags
    })["instance"]["fleet"] == "primary-small"
    error_message = "instances do not carry the tags"
  }

  assert {
    condition = (
      aws_autoscaling_group.this.mixed_instances_policy[0].instances_distribution[0].on_demand_percentage_above_base_capacity == 0
      && aws_autoscaling_group.this.mixed_instances_policy[0].instances_distribution[0].spot_allocation_strategy == "price-capacity-optimized"
      && aws_autoscaling_group.this.mixed_instances_policy[0].launch_template[0].launch_template_specification[0].version == "$Latest"
      && aws_autoscaling_group.this.mixed_instances_policy[0].launch_template[0].override[*].instance_type == tolist(["r5.xlarge", "r4.xlarge", "m5.2xlarge", "m4.2xlarge"])
    )
    error_message = "the group does not launch spot instances of its size"
  }

  assert {
    condition     = aws_launch_template.this.name == "analytics-primary-small-group"
    error_message = "the launch template's name is that of a fleet's"
  }
}

run "group_of_spot_and_on_demand" {
  command = plan

  variables {
    on_demand_base_capacity                  = 2
    on_demand_percentage_above_base_capacity = 25
    spot_allocation_strategy                 = "lowestPrice"
    max_price                                = "0.25"
  }

  assert {
    condition = (
      aws_autoscaling_group.this.mixed_instances_policy[0].instances_distribution[0].on_demand_base_capacity == 2
      && aws_autoscaling_group.this.mixed_instances_policy[0].instances_distribution[0].on_demand_percentage_above_base_capacity == 25
      && aws_autoscaling_group.this.mixed_instances_policy[0].instances_distribution[0].spot_allocation_strategy == "lowest-price"
      && aws_autoscaling_group.this.mixed_instances_policy[0].instances_distribution[0].spot_max_price == "0.25"
    )
    error_message = "the distribution is not the one that the variables state"
  }
}

run "on_demand_group_without_a_policy" {
  command = plan

  variables {
    spot                          = false
    instance_types                = ["m5.large"]
    launch_template_instance_type = "m5.large"
    mixed_instances_policy        = false
    launch_template_version       = "$Default"
    group_tags                    = [{ key = "k8s.io/cluster-autoscaler/enabled", value = "true", propagate_at_launch = true }]
  }

  assert {
    condition     = length(aws_autoscaling_group.this.mixed_instances_policy) == 0 && aws_autoscaling_group.this.launch_template[0].version == "$Default"
    error_message = "the group does not launch from its template alone"
  }

  assert {
    condition     = length(aws_autoscaling_group.this.tag) == 1 && one(aws_autoscaling_group.this.tag).propagate_at_launch
    error_message = "tags of the group's own maker are not kept"
  }
}

run "on_demand_group_of_one_zone" {
  command = plan

  variables {
    spot = false
    zone = "us-west-2b"
  }

  assert {
    condition = (
      aws_autoscaling_group.this.mixed_instances_policy[0].instances_distribution[0].on_demand_percentage_above_base_capacity == 100
      && toset(aws_autoscaling_group.this.vpc_zone_identifier) == toset(["subnet-0bb"])
      && output.fleet_name == "primary-small-us-west-2b"
    )
    error_message = "spot instances, or another zone"
  }
}
