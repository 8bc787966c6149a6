# Rules of what a fleet and its launch template may say otherwise than the module. One run that each rule accepts, one
# that it rejects. The provider is a mock: no run proves what EC2 does with the result, nor that a plan after an apply
# is empty (the tests against the emulated AWS do).
mock_provider "aws" {}

variables {
  cluster_name          = "analytics"
  sector_label          = "primary"
  node_pool_size        = "small"
  node_pool_kind        = "memory"
  ami                   = "ami-0123456789abcdef0"
  security_group_id     = "sg-0123456789abcdef0"
  instance_profile_name = "analytics-node"
  private_subnet_ids    = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" }
}

run "accepts_max_prices_above_0" {
  command = plan

  variables {
    max_prices = { "r5.xlarge" = "0.252" }
  }
}

run "rejects_max_prices_above_0" {
  command = plan

  variables {
    max_prices = { "r5.xlarge" = "0" }
  }

  expect_failures = [var.max_prices]
}

run "accepts_max_prices_of_spot" {
  command = plan

  variables {
    max_prices = { "r5.xlarge" = "0.252" }
    spot       = true
  }
}

run "rejects_max_prices_of_spot" {
  command = plan

  variables {
    max_prices = { "r5.xlarge" = "0.252" }
    spot       = false
  }

  expect_failures = [var.max_prices]
}

run "accepts_overrides_that_count_nodes" {
  command = plan

  variables {
    instance_types = ["m5.large"]
    overrides      = [{ instance_type = "m5.large", subnet_id = "subnet-0aa", weighted_capacity = 1 }]
  }
}

run "rejects_overrides_that_count_nodes" {
  command = plan

  variables {
    instance_types = ["m5.large"]
    overrides      = [{ instance_type = "m5.large", subnet_id = "subnet-0aa", weighted_capacity = 4 }]
  }

  expect_failures = [var.overrides]
}

run "accepts_overrides_of_the_fleets_types" {
  command = plan

  variables {
    instance_types = ["m5.large"]
    overrides      = [{ instance_type = "m5.large", subnet_id = "subnet-0aa", weighted_capacity = 1 }]
  }
}

run "rejects_overrides_of_the_fleets_types" {
  command = plan

  variables {
    instance_types = ["m5.large"]
    overrides      = [{ instance_type = "c5.large", subnet_id = "subnet-0aa", weighted_capacity = 1 }]
  }

  expect_failures = [var.overrides]
}

run "accepts_overrides_with_subnet_ids" {
  command = plan

  variables {
    instance_types = ["m5.large"]
    overrides      = [{ instance_type = "m5.large", subnet_id = "subnet-0bb", weighted_capacity = 1 }]
  }
}

run "rejects_overrides_with_subnet_ids" {
  command = plan

  variables {
    instance_types = ["m5.large"]
    overrides      = [{ instance_type = "m5.large", subnet_id = "us-west-2a", weighted_capacity = 1 }]
  }

  expect_failures = [var.overrides]
}

run "accepts_fleet_tags_that_name_it" {
  command = plan

  variables {
    fleet_tags = { cluster = "analytics", sector = "primary", size = "small", name = "kept" }
  }
}

run "rejects_fleet_tags_that_name_it" {
  command = plan

  variables {
    fleet_tags = { cluster = "analytics", sector = "primary", size = "large" }
  }

  expect_failures = [var.fleet_tags]
}

run "accepts_launch_template_name" {
  command = plan

  variables {
    launch_template_name = "nodes-(old)/1"
  }
}

run "accepts_launch_template_name_of_125_characters" {
  command = plan

  variables {
    launch_template_name = join("", [for i in range(125) : "n"])
  }
}

run "rejects_launch_template_name_of_126_characters" {
  command = plan

  variables {
    launch_template_name = join("", [for i in range(126) : "n"])
  }

  expect_failures = [var.launch_template_name]
}

run "rejects_launch_template_name" {
  command = plan

  variables {
    launch_template_name = "no blanks"
  }

  expect_failures = [var.launch_template_name]
}

run "accepts_launch_template_version" {
  command = plan

  variables {
    launch_template_version = "3"
  }
}

run "rejects_launch_template_version" {
  command = plan

  variables {
    launch_template_version = "latest"
  }

  expect_failures = [var.launch_template_version]
}

run "accepts_launch_template_description" {
  command = plan

  variables {
    launch_template_description = ""
  }
}

run "rejects_launch_template_description" {
  command = plan

  variables {
    launch_template_description = join("", [for i in range(256) : "x"])
  }

  expect_failures = [var.launch_template_description]
}

run "accepts_tag_specifications_of_a_launch" {
  command = plan

  variables {
    tag_specifications = [{ resource_type = "instance", tags = { cluster = "analytics" } }]
  }
}

run "rejects_tag_specifications_of_a_launch" {
  command = plan

  variables {
    tag_specifications = [{ resource_type = "fleet" }]
  }

  expect_failures = [var.tag_specifications]
}

run "accepts_launch_template_instance_type" {
  command = plan

  variables {
    launch_template_instance_type = "m5.large"
  }
}

run "rejects_launch_template_instance_type" {
  command = plan

  variables {
    launch_template_instance_type = "large"
  }

  expect_failures = [var.launch_template_instance_type]
}

run "accepts_instance_profile_arn" {
  command = plan

  variables {
    instance_profile_name = ""
    instance_profile_arn  = "arn:aws:iam::123456789012:instance-profile/node"
  }
}

run "rejects_instance_profile_arn" {
  command = plan

  variables {
    instance_profile_name = ""
    instance_profile_arn  = "node"
  }

  expect_failures = [var.instance_profile_arn]
}

run "accepts_one_way_to_name_the_instance_profile" {
  command = plan

  variables {
    instance_profile_name = ""
    instance_profile_arn  = "arn:aws:iam::123456789012:instance-profile/node"
  }
}

run "rejects_one_way_to_name_the_instance_profile" {
  command = plan

  variables {
    instance_profile_arn = "arn:aws:iam::123456789012:instance-profile/node"
  }

  expect_failures = [var.instance_profile_arn]
}

run "accepts_several_security_groups" {
  command = plan

  variables {
    security_group_id  = ""
    security_group_ids = ["sg-0aa", "sg-0bb"]
  }
}

run "rejects_several_security_groups" {
  command = plan

  variables {
    security_group_ids = ["default"]
  }

  expect_failures = [var.security_group_ids]
}

run "accepts_a_security_group_that_is_given_otherwise" {
  command = plan

  variables {
    security_group_id  = ""
    network_interfaces = [{ device_index = 0, security_groups = ["sg-0aa"] }]
  }
}

run "rejects_a_security_group_that_is_given_otherwise" {
  command = plan

  variables {
    security_group_id = ""
  }

  expect_failures = [var.security_group_id]
}

run "accepts_network_interfaces_with_security_group_ids" {
  command = plan

  variables {
    network_interfaces = [{ device_index = 0, security_groups = ["sg-0aa"] }]
  }
}

run "rejects_network_interfaces_with_security_group_ids" {
  command = plan

  variables {
    network_interfaces = [{ device_index = 0, security_groups = ["default"] }]
  }

  expect_failures = [var.network_interfaces]
}

run "accepts_each_device_once" {
  command = plan

  variables {
    volumes = [{ device_name = "/dev/xvda", size = 20, type = "gp3" }, { device_name = "/dev/xvdb" }]
  }
}

run "rejects_unknown_volume_type" {
  command = plan

  variables {
    volumes = [{ device_name = "/dev/xvda", type = "floppy" }]
  }

  expect_failures = [var.volumes]
}

run "rejects_each_device_once" {
  command = plan

  variables {
    volumes = [{ device_name = "/dev/xvda" }, { device_name = "/dev/xvda" }]
  }

  expect_failures = [var.volumes]
}

run "accepts_metadata_options_words" {
  command = plan

  variables {
    metadata_options = { http_tokens = "optional", http_endpoint = "enabled" }
  }
}

run "rejects_metadata_options_words" {
  command = plan

  variables {
    metadata_options = { http_tokens = "none" }
  }

  expect_failures = [var.metadata_options]
}

run "accepts_metadata_options_hop_limit" {
  command = plan

  variables {
    metadata_options = { http_put_response_hop_limit = 2 }
  }
}

run "rejects_metadata_options_hop_limit" {
  command = plan

  variables {
    metadata_options = { http_put_response_hop_limit = 65 }
  }

  expect_failures = [var.metadata_options]
}

run "rejects_metadata_options_hop_limit_with_a_fraction" {
  command = plan

  variables {
    metadata_options = { http_put_response_hop_limit = 1.5 }
  }

  expect_failures = [var.metadata_options]
}

run "accepts_cpu_credits" {
  command = plan

  variables {
    cpu_credits = "unlimited"
  }
}

run "rejects_cpu_credits" {
  command = plan

  variables {
    cpu_credits = "many"
  }

  expect_failures = [var.cpu_credits]
}

run "accepts_shutdown_behavior" {
  command = plan

  variables {
    instance_initiated_shutdown_behavior = "terminate"
  }
}

run "rejects_shutdown_behavior" {
  command = plan

  variables {
    instance_initiated_shutdown_behavior = "hibernate"
  }

  expect_failures = [var.instance_initiated_shutdown_behavior]
}

run "accepts_placement_tenancy" {
  command = plan

  variables {
    placement = { tenancy = "dedicated" }
  }
}

run "rejects_placement_tenancy" {
  command = plan

  variables {
    placement = { tenancy = "shared" }
  }

  expect_failures = [var.placement]
}

run "accepts_bootstrap_arguments_on_one_line" {
  command = plan

  variables {
    ami_type            = "AL2"
    bootstrap_arguments = "--pause-container-version 3.9"
  }
}

run "rejects_bootstrap_arguments_on_one_line" {
  command = plan

  variables {
    ami_type            = "AL2"
    bootstrap_arguments = "a\nb"
  }

  expect_failures = [var.bootstrap_arguments]
}

run "accepts_bootstrap_arguments_of_al2" {
  command = plan

  variables {
    ami_type            = "AL2"
    bootstrap_arguments = "--aws-api-retry-attempts 5"
  }
}

run "rejects_bootstrap_arguments_of_al2" {
  command = plan

  variables {
    ami_type            = "AL2023"
    bootstrap_arguments = "--aws-api-retry-attempts 5"
  }

  expect_failures = [var.bootstrap_arguments]
}

run "what_is_not_stated_is_not_in_the_template" {
  command = plan

  variables {
    launch_template_description = ""
    volumes                     = []
    metadata_options            = {}
    tag_specifications          = []
    user_data                   = ""
    security_group_ids          = []
    instance_profile_name       = ""
  }

  assert {
    condition = (
      length(aws_launch_template.this.block_device_mappings) == 0
      && length(aws_launch_template.this.tag_specifications) == 0
      && length(aws_launch_template.this.iam_instance_profile) == 0
      && aws_launch_template.this.user_data == null
      && aws_launch_template.this.vpc_security_group_ids == null
    )
    error_message = "the template states something that the variables do not"
  }
}

run "prices_of_types_win_over_the_price_of_the_fleet" {
  command = plan

  variables {
    instance_types     = ["m5.large", "c5.large"]
    private_subnet_ids = { us-west-2a = "subnet-0aa" }
    max_price          = "0.1"
    max_prices         = { "c5.large" = "0.200" }
  }

  assert {
    condition     = aws_ec2_fleet.this.launch_template_config[0].override[*].max_price == tolist(["0.1", "0.200"])
    error_message = "not each type with its own price"
  }
}

run "overrides_are_taken_as_they_are" {
  command = plan

  variables {
    instance_types          = ["m5.large", "c5.large"]
    launch_template_version = "4"
    overrides = [
      { instance_type = "c5.large", subnet_id = "subnet-0bb", availability_zone = "us-west-2b", max_price = "0.200", priority = 0, weighted_capacity = 1 },
      { instance_type = "m5.large", subnet_id = "subnet-0aa" },
    ]
  }

  assert {
    condition = (
      jsonencode(aws_ec2_fleet.this.launch_template_config[0].override[*].instance_type) == jsonencode(["c5.large", "m5.large"])
      && aws_ec2_fleet.this.launch_template_config[0].override[0].max_price == "0.200"
      && aws_ec2_fleet.this.launch_template_config[0].override[1].weighted_capacity == null
      && aws_ec2_fleet.this.launch_template_config[0].launch_template_specification[0].version == "4"
    )
    error_message = "the overrides or the version are not those that were given"
  }
}

run "accepts_volumes_with_sizes_and_speeds" {
  command = plan

  variables {
    volumes = [{ device_name = "/dev/xvda", size = 1, iops = 3000, throughput = 125 }, { device_name = "/dev/xvdb", size = 65536 }]
  }
}

run "rejects_a_volume_of_no_size" {
  command = plan

  variables {
    volumes = [{ device_name = "/dev/xvda", size = 0 }]
  }

  expect_failures = [var.volumes]
}

run "rejects_a_volume_over_the_largest_size" {
  command = plan

  variables {
    volumes = [{ device_name = "/dev/xvda", size = 65537 }]
  }

  expect_failures = [var.volumes]
}

run "rejects_a_volume_of_half_a_gib" {
  command = plan

  variables {
    volumes = [{ device_name = "/dev/xvda", size = 1.5 }]
  }

  expect_failures = [var.volumes]
}

run "rejects_a_volume_of_negative_speed" {
  command = plan

  variables {
    volumes = [{ device_name = "/dev/xvda", iops = -1 }]
  }

  expect_failures = [var.volumes]
}

run "rejects_a_network_interface_at_a_negative_index" {
  command = plan

  variables {
    network_interfaces = [{ device_index = -1 }]
  }

  expect_failures = [var.network_interfaces]
}

run "rejects_a_network_interface_in_no_subnet" {
  command = plan

  variables {
    network_interfaces = [{ device_index = 0, subnet_id = "vpc-0aa" }]
  }

  expect_failures = [var.network_interfaces]
}

run "rejects_a_partition_below_one" {
  command = plan

  variables {
    placement = { partition_number = 0 }
  }

  expect_failures = [var.placement]
}

run "rejects_an_override_of_negative_priority" {
  command = plan

  variables {
    instance_types = ["m5.large"]
    overrides      = [{ instance_type = "m5.large", subnet_id = "subnet-0aa", priority = -1 }]
  }

  expect_failures = [var.overrides]
}
