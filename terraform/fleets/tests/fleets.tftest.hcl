# The set of one cluster's fleets, rule by rule. The provider is a mock: no run here proves what EC2 answers, nor that a
# plan after an apply is empty (the sandbox tests do). Faults inside one fleet are eks_fleet's to reject, and tested there.
mock_provider "aws" {}

variables {
  cluster_name = "analytics"
}

run "accepts_fleets_of_two_sectors" {
  command = plan

  variables {
    fleets = {
      "primary-small"    = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" }, initial_node_count = 2, spot = false, node_taints = [{ key = "a", effect = "NoSchedule" }] }
      "primary-medium"   = { sector_label = "primary", node_pool_size = "medium", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" } }
      "coordinate-small" = { sector_label = "coordinate", node_pool_size = "small", node_pool_kind = "cpu", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" }, zone = null }
    }
  }

  assert {
    condition     = keys(output.tags) == ["coordinate-small", "primary-medium", "primary-small"]
    error_message = "fleets are missing"
  }

  assert {
    condition     = output.tags["primary-small"].Spot == "false" && output.tags["primary-medium"].Spot == "true"
    error_message = "variables of one fleet reach another, or a left-out one is not the default"
  }

  assert {
    condition     = output.instance_types["coordinate-small"][0] == "c5.2xlarge"
    error_message = "kind does not reach the fleet"
  }
}

run "accepts_auto_scaling_group_beside_a_fleet" {
  command = plan

  variables {
    fleets = {
      "primary-small" = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa" } }
      "primary-large" = { sector_label = "primary", node_pool_size = "large", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa" }, auto_scaling_group = "analytics-primary-large", max_size = 20 }
    }
  }

  assert {
    condition     = keys(output.fleet_id) == ["primary-small"] && output.auto_scaling_group == { primary-large = "analytics-primary-large" }
    error_message = "a group is made as a fleet, or a fleet as a group"
  }

  assert {
    condition     = output.tags["primary-large"].size == "large" && output.instance_types["primary-large"][0] == "r5.4xlarge"
    error_message = "the group's variables do not reach it"
  }
}

run "accepts_no_fleets" {
  command = plan

  variables {
    fleets = {
    }
  }
}

run "accepts_fleet_name_of_sector_and_size" {
  command = plan

  variables {
    fleets = {
      "primary-small" = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" } }
    }
  }
}

run "rejects_fleet_name_of_sector_and_size" {
  command = plan

  variables {
    fleets = {
      "main-small" = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" } }
    }
  }

  expect_failures = [var.fleets]
}

run "accepts_fleet_name_with_zone" {
  command = plan

  variables {
    fleets = {
      "primary-small-us-west-2a" = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" }, zone = "us-west-2a" }
    }
  }
}

run "rejects_fleet_name_with_zone" {
  command = plan

  variables {
    fleets = {
      "primary-small" = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" }, zone = "us-west-2a" }
    }
  }

  expect_failures = [var.fleets]
}

run "accepts_sector_size_zone_once" {
  command = plan

  variables {
    fleets = {
      "primary-small-us-west-2a" = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" }, zone = "us-west-2a" }
      "primary-small-us-west-2b" = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" }, zone = "us-west-2b" }
    }
  }
}

run "rejects_sector_size_zone_once" {
  command = plan

  variables {
    fleets = {
      "primary-small"       = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" } }
      "primary-small-again" = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" } }
    }
  }

  expect_failures = [var.fleets]
}

run "accepts_size_with_and_without_zone_in_two_sectors" {
  command = plan

  variables {
    fleets = {
      "primary-small"          = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" } }
      "other-small-us-west-2a" = { sector_label = "other", node_pool_size = "small", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" }, zone = "us-west-2a" }
    }
  }
}

run "rejects_size_with_and_without_zone_in_one_sector" {
  command = plan

  variables {
    fleets = {
      "primary-small"            = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" } }
      "primary-small-us-west-2a" = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" }, zone = "us-west-2a" }
    }
  }

  expect_failures = [var.fleets]
}

run "accepts_departing_fleet_without_zone_beside_its_size_by_zone" {
  command = plan

  variables {
    fleets = {
      "primary-small"            = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" }, departing = true }
      "primary-small-us-west-2a" = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" }, zone = "us-west-2a" }
    }
  }
}

run "accepts_spot_and_on_demand_of_one_size_with_the_lifecycle_in_a_name" {
  command = plan

  variables {
    fleets = {
      "primary-small"                      = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" } }
      "primary-small-on-demand"            = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" }, spot = false, lifecycle_in_name = true }
      "primary-small-us-west-2a-on-demand" = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" }, departing = true, spot = false, lifecycle_in_name = true, zone = "us-west-2a" }
    }
  }
}

run "rejects_fleet_name_without_its_lifecycle" {
  command = plan

  variables {
    fleets = {
      "primary-small" = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" }, spot = false, lifecycle_in_name = true }
    }
  }

  expect_failures = [var.fleets]
}

run "rejects_spot_twice_though_one_name_has_the_lifecycle" {
  command = plan

  variables {
    fleets = {
      "primary-small"      = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" } }
      "primary-small-spot" = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" }, lifecycle_in_name = true }
    }
  }

  expect_failures = [var.fleets]
}

run "accepts_one_kind_per_sector" {
  command = plan

  variables {
    fleets = {
      "primary-small"  = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" } }
      "primary-medium" = { sector_label = "primary", node_pool_size = "medium", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" } }
      "cpu-small"      = { sector_label = "cpu", node_pool_size = "small", node_pool_kind = "cpu", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" } }
    }
  }
}

run "rejects_one_kind_per_sector" {
  command = plan

  variables {
    fleets = {
      "primary-small"  = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" } }
      "primary-medium" = { sector_label = "primary", node_pool_size = "medium", node_pool_kind = "cpu", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" } }
    }
  }

  expect_failures = [var.fleets]
}

run "accepts_own_kind_with_instance_types" {
  command = plan

  variables {
    fleets = {
      "primary-small" = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "gpu", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" }, instance_types = ["g5.xlarge"] }
    }
  }
}

run "rejects_own_kind_without_instance_types" {
  command = plan

  variables {
    fleets = {
      "primary-small" = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "gpu", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" } }
    }
  }

  expect_failures = [var.fleets]
}

run "accepts_own_size_with_instance_types" {
  command = plan

  variables {
    fleets = {
      "primary-tiny" = { sector_label = "primary", node_pool_size = "tiny", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" }, instance_types = ["t3.small"] }
    }
  }
}

run "rejects_own_size_without_instance_types" {
  command = plan

  variables {
    fleets = {
      "primary-tiny" = { sector_label = "primary", node_pool_size = "tiny", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" } }
    }
  }

  expect_failures = [var.fleets]
}

run "accepts_node_count_up_to_10000" {
  command = plan

  variables {
    fleets = {
      "primary-small" = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" }, initial_node_count = 10000 }
    }
  }
}

run "rejects_node_count_up_to_10000" {
  command = plan

  variables {
    fleets = {
      "primary-small" = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" }, initial_node_count = -1 }
    }
  }

  expect_failures = [var.fleets]
}

run "accepts_tags_near_the_reserved_ones" {
  command = plan

  variables {
    fleets = {
      "primary-small" = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" }, tags = { NAME = "x", "kubernetes.io/cluster/other" = "shared" } }
    }
  }
}

run "rejects_reserved_tag_capital_Name" {
  command = plan

  variables {
    fleets = {
      "primary-small" = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" }, tags = { "Name" = "x" } }
    }
  }

  expect_failures = [var.fleets]
}

run "rejects_reserved_tag_capital_Spot" {
  command = plan

  variables {
    fleets = {
      "primary-small" = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" }, tags = { "Spot" = "x" } }
    }
  }

  expect_failures = [var.fleets]
}

run "rejects_reserved_tag_cluster" {
  command = plan

  variables {
    fleets = {
      "primary-small" = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" }, tags = { "cluster" = "x" } }
    }
  }

  expect_failures = [var.fleets]
}

run "rejects_reserved_tag_fleet" {
  command = plan

  variables {
    fleets = {
      "primary-small" = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" }, tags = { "fleet" = "x" } }
    }
  }

  expect_failures = [var.fleets]
}

run "rejects_reserved_tag_kind" {
  command = plan

  variables {
    fleets = {
      "primary-small" = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" }, tags = { "kind" = "x" } }
    }
  }

  expect_failures = [var.fleets]
}

run "rejects_reserved_tag_managed" {
  command = plan

  variables {
    fleets = {
      "primary-small" = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" }, tags = { "managed" = "x" } }
    }
  }

  expect_failures = [var.fleets]
}

run "rejects_reserved_tag_name" {
  command = plan

  variables {
    fleets = {
      "primary-small" = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" }, tags = { "name" = "x" } }
    }
  }

  expect_failures = [var.fleets]
}

run "rejects_reserved_tag_sector" {
  command = plan

  variables {
    fleets = {
      "primary-small" = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" }, tags = { "sector" = "x" } }
    }
  }

  expect_failures = [var.fleets]
}

run "rejects_reserved_tag_size" {
  command = plan

  variables {
    fleets = {
      "primary-small" = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" }, tags = { "size" = "x" } }
    }
  }

  expect_failures = [var.fleets]
}

run "rejects_reserved_tag_cluster_ownership" {
  command = plan

  variables {
    fleets = {
      "primary-small" = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" }, tags = { "kubernetes.io/cluster/analytics" = "x" } }
    }
  }

  expect_failures = [var.fleets]
}

run "accepts_tag_keys_without_aws_prefix" {
  command = plan

  variables {
    fleets = {
      "primary-small" = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" }, tags = { "awsome" = "x" } }
    }
  }
}

run "rejects_tag_keys_with_aws_prefix" {
  command = plan

  variables {
    fleets = {
      "primary-small" = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" }, tags = { "aws:x" = "x" } }
    }
  }

  expect_failures = [var.fleets]
}

run "accepts_42_tags" {
  command = plan

  variables {
    fleets = {
      "primary-small" = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" }, tags = { for i in range(42) : "key-${i}" => "x" } }
    }
  }
}

run "rejects_43_tags" {
  command = plan

  variables {
    fleets = {
      "primary-small" = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" }, tags = { for i in range(43) : "key-${i}" => "x" } }
    }
  }

  expect_failures = [var.fleets]
}

run "accepts_cluster_name_that_is_a_label_value" {
  command = plan

  variables {
    cluster_name = "a.b-c_d"
    fleets       = {}
  }
}

run "rejects_cluster_name_that_is_a_label_value" {
  command = plan

  variables {
    cluster_name = "not/a label"
    fleets       = {}
  }

  expect_failures = [var.cluster_name]
}

run "accepts_launch_template_names_that_differ" {
  command = plan

  variables {
    fleets = {
      "primary-small"  = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa" }, launch_template_name = "nodes-1" }
      "primary-medium" = { sector_label = "primary", node_pool_size = "medium", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa" }, launch_template_name = "analytics-primary-small" }
    }
  }
}

run "rejects_launch_template_name_twice" {
  command = plan

  variables {
    fleets = {
      "primary-small"  = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa" }, launch_template_name = "nodes" }
      "primary-medium" = { sector_label = "primary", node_pool_size = "medium", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa" }, launch_template_name = "nodes" }
    }
  }

  expect_failures = [var.fleets]
}

run "rejects_launch_template_name_that_is_a_default" {
  command = plan

  variables {
    fleets = {
      "primary-small"  = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa" } }
      "primary-medium" = { sector_label = "primary", node_pool_size = "medium", node_pool_kind = "memory", ami = "ami-0aa", security_group_id = "sg-0aa", private_subnet_ids = { us-west-2a = "subnet-0aa" }, launch_template_name = "analytics-primary-small" }
    }
  }

  expect_failures = [var.fleets]
}
