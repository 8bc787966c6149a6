# Rules of the fleet: its name, size, place and tags. One run that each rule accepts, one that it rejects.
# The provider is a mock: no run proves what EC2 does with the result, nor that a plan after an apply is empty
# (the tests against the emulated AWS do).
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

run "accepts_a_minimal_fleet" {
  command = plan
}

run "accepts_cluster_name_that_is_a_label_value" {
  command = plan

  variables {
    cluster_name = "a.b-c_d"
  }
}

run "rejects_cluster_name_that_is_a_label_value" {
  command = plan

  variables {
    cluster_name = "not/a label"
  }

  expect_failures = [var.cluster_name]
}

run "accepts_sector_label_that_is_a_label_value" {
  command = plan

  variables {
    sector_label = "data-2.x"
  }
}

run "rejects_sector_label_that_is_a_label_value" {
  command = plan

  variables {
    sector_label = "-data"
  }

  expect_failures = [var.sector_label]
}

run "accepts_fleet_name_of_63_characters" {
  command = plan

  variables {
    sector_label = join("", [for i in range(57) : "s"])
  }
}

run "rejects_fleet_name_of_63_characters" {
  command = plan

  variables {
    sector_label = join("", [for i in range(58) : "s"])
  }

  expect_failures = [var.sector_label]
}

run "accepts_own_size_that_is_a_label_value" {
  command = plan

  variables {
    node_pool_size = "gpu_small"
    instance_types = ["g5.xlarge"]
  }
}

run "rejects_own_size_that_is_a_label_value" {
  command = plan

  variables {
    node_pool_size = "gpu small"
    instance_types = ["g5.xlarge"]
  }

  expect_failures = [var.node_pool_size]
}

run "accepts_builtin_size" {
  command = plan

  variables {
    node_pool_size = "xlarge"
  }
}

run "rejects_builtin_size" {
  command = plan

  variables {
    node_pool_size = "huge"
  }

  expect_failures = [var.node_pool_size]
}

run "accepts_own_kind_that_is_a_label_value" {
  command = plan

  variables {
    node_pool_kind = "gpu"
    instance_types = ["g5.xlarge"]
  }
}

run "rejects_own_kind_that_is_a_label_value" {
  command = plan

  variables {
    node_pool_kind = "gpu!"
    instance_types = ["g5.xlarge"]
  }

  expect_failures = [var.node_pool_kind]
}

run "accepts_builtin_kind" {
  command = plan

  variables {
    node_pool_kind = "cpu"
  }
}

run "rejects_builtin_kind" {
  command = plan

  variables {
    node_pool_kind = "gpu"
  }

  expect_failures = [var.node_pool_kind]
}

run "accepts_zone_with_a_subnet" {
  command = plan

  variables {
    zone = "us-west-2b"
  }
}

run "rejects_zone_with_a_subnet" {
  command = plan

  variables {
    zone = "us-west-2c"
  }

  expect_failures = [var.zone]
}

run "accepts_node_count_up_to_10000" {
  command = plan

  variables {
    initial_node_count = 10000
  }
}

run "rejects_node_count_up_to_10000" {
  command = plan

  variables {
    initial_node_count = 10001
  }

  expect_failures = [var.initial_node_count]
}

run "accepts_node_count_not_negative" {
  command = plan

  variables {
    initial_node_count = 0
  }
}

run "rejects_node_count_not_negative" {
  command = plan

  variables {
    initial_node_count = -1
  }

  expect_failures = [var.initial_node_count]
}

run "accepts_node_count_whole" {
  command = plan

  variables {
    initial_node_count = 3
  }
}

run "rejects_node_count_whole" {
  command = plan

  variables {
    initial_node_count = 1.5
  }

  expect_failures = [var.initial_node_count]
}

run "accepts_instance_type_names" {
  command = plan

  variables {
    instance_types = ["m7g.xlarge", "u-6tb1.metal"]
  }
}

run "rejects_instance_type_names" {
  command = plan

  variables {
    instance_types = ["m7g xlarge"]
  }

  expect_failures = [var.instance_types]
}

run "accepts_instance_types_once" {
  command = plan

  variables {
    instance_types = ["m5.large", "m5.xlarge"]
  }
}

run "rejects_instance_types_once" {
  command = plan

  variables {
    instance_types = ["m5.large", "m5.large"]
  }

  expect_failures = [var.instance_types]
}

run "accepts_at_least_one_subnet" {
  command = plan

  variables {
    private_subnet_ids = { us-west-2a = "subnet-0aa" }
  }
}

run "rejects_at_least_one_subnet" {
  command = plan

  variables {
    private_subnet_ids = {}
  }

  expect_failures = [var.private_subnet_ids]
}

run "accepts_subnet_ids" {
  command = plan

  variables {
    private_subnet_ids = { us-west-2a = "subnet-aaa" }
  }
}

run "rejects_subnet_ids" {
  command = plan

  variables {
    private_subnet_ids = { us-west-2a = "vpc-0aa" }
  }

  expect_failures = [var.private_subnet_ids]
}

run "accepts_max_price_that_is_a_number" {
  command = plan

  variables {
    max_price = "0.25"
  }
}

run "rejects_max_price_that_is_a_number" {
  command = plan

  variables {
    max_price = "cheap"
  }

  expect_failures = [var.max_price]
}

run "accepts_max_price_above_zero" {
  command = plan

  variables {
    max_price = "0.01"
  }
}

run "rejects_max_price_above_zero" {
  command = plan

  variables {
    max_price = "0.00"
  }

  expect_failures = [var.max_price]
}

run "accepts_max_price_of_spot_only" {
  command = plan

  variables {
    max_price = "1"
    spot      = true
  }
}

run "rejects_max_price_of_spot_only" {
  command = plan

  variables {
    max_price = "1"
    spot      = false
  }

  expect_failures = [var.max_price]
}

run "accepts_spot_allocation_strategy" {
  command = plan

  variables {
    spot_allocation_strategy = "capacity-optimized"
  }
}

run "rejects_spot_allocation_strategy" {
  command = plan

  variables {
    spot_allocation_strategy = "cheapest"
  }

  expect_failures = [var.spot_allocation_strategy]
}

run "accepts_tag_keys_near_the_reserved_ones" {
  command = plan

  variables {
    tags = { NAME = "x", sectors = "x", "kubernetes.io/cluster/other" = "shared" }
  }
}

run "rejects_reserved_tag_capital_Name" {
  command = plan

  variables {
    tags = { "Name" = "x" }
  }

  expect_failures = [var.tags]
}

run "rejects_reserved_tag_capital_Spot" {
  command = plan

  variables {
    tags = { "Spot" = "x" }
  }

  expect_failures = [var.tags]
}

run "rejects_reserved_tag_cluster" {
  command = plan

  variables {
    tags = { "cluster" = "x" }
  }

  expect_failures = [var.tags]
}

run "rejects_reserved_tag_fleet" {
  command = plan

  variables {
    tags = { "fleet" = "x" }
  }

  expect_failures = [var.tags]
}

run "rejects_reserved_tag_kind" {
  command = plan

  variables {
    tags = { "kind" = "x" }
  }

  expect_failures = [var.tags]
}

run "rejects_reserved_tag_managed" {
  command = plan

  variables {
    tags = { "managed" = "x" }
  }

  expect_failures = [var.tags]
}

run "rejects_reserved_tag_name" {
  command = plan

  variables {
    tags = { "name" = "x" }
  }

  expect_failures = [var.tags]
}

run "rejects_reserved_tag_sector" {
  command = plan

  variables {
    tags = { "sector" = "x" }
  }

  expect_failures = [var.tags]
}

run "rejects_reserved_tag_size" {
  command = plan

  variables {
    tags = { "size" = "x" }
  }

  expect_failures = [var.tags]
}

run "rejects_reserved_tag_cluster_ownership" {
  command = plan

  variables {
    tags = { "kubernetes.io/cluster/analytics" = "x" }
  }

  expect_failures = [var.tags]
}

run "accepts_tag_keys_without_aws_prefix" {
  command = plan

  variables {
    tags = { "awsome:x" = "y" }
  }
}

run "rejects_tag_keys_without_aws_prefix" {
  command = plan

  variables {
    tags = { "AWS:x" = "y" }
  }

  expect_failures = [var.tags]
}

run "accepts_42_tags" {
  command = plan

  variables {
    tags = { for i in range(42) : "key-${i}" => "x" }
  }
}

run "rejects_42_tags" {
  command = plan

  variables {
    tags = { for i in range(43) : "key-${i}" => "x" }
  }

  expect_failures = [var.tags]
}

run "accepts_tag_key_of_128_characters" {
  command = plan

  variables {
    tags = { (join("", [for i in range(128) : "é"])) = "x" }
  }
}

run "rejects_tag_key_of_128_characters" {
  command = plan

  variables {
    tags = { (join("", [for i in range(129) : "é"])) = "x" }
  }

  expect_failures = [var.tags]
}

run "rejects_empty_tag_key" {
  command = plan

  variables {
    tags = { "" = "x" }
  }

  expect_failures = [var.tags]
}

run "accepts_tag_value_of_256_characters" {
  command = plan

  variables {
    tags = { note = join("", [for i in range(256) : "é"]) }
  }
}

run "rejects_tag_value_of_256_characters" {
  command = plan

  variables {
    tags = { note = join("", [for i in range(257) : "é"]) }
  }

  expect_failures = [var.tags]
}

run "rejects_null_tag_value" {
  command = plan

  variables {
    tags = { note = null }
  }

  expect_failures = [var.tags]
}

run "accepts_tag_value_without_control_characters" {
  command = plan

  variables {
    tags = { note = "$${file(\"/etc/hostname\")} %%{ if true } ünïcode" }
  }
}

run "rejects_tag_value_without_control_characters" {
  command = plan

  variables {
    tags = { note = "two\nlines" }
  }

  expect_failures = [var.tags]
}

run "accepts_tag_key_without_control_characters" {
  command = plan

  variables {
    tags = { "a b" = "x" }
  }
}

run "rejects_tag_key_without_control_characters" {
  command = plan

  variables {
    tags = { "a\tb" = "x" }
  }

  expect_failures = [var.tags]
}

run "accepts_300_overrides" {
  command = plan

  variables {
    instance_types = [for i in range(150) : "m5.s${i}"]
  }
}

run "rejects_300_overrides" {
  command = plan

  variables {
    instance_types = [for i in range(151) : "m5.s${i}"]
  }

  expect_failures = [aws_ec2_fleet.this]
}
