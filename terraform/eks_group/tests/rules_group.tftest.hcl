# The rules of the variables that eks_fleet does not have; the others are tested there. The provider is a mock: no run here
# proves what Auto Scaling answers.
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

run "accepts_group_name_of_255_characters" {
  command = plan

  variables {
    group_name = join("", [for i in range(255) : "a"])
  }
}

run "rejects_group_name_of_255_characters" {
  command = plan

  variables {
    group_name = join("", [for i in range(256) : "a"])
  }

  expect_failures = [var.group_name]
}

run "accepts_image_that_a_parameter_names" {
  command = plan

  variables {
    ami = "resolve:ssm:/a/b"
  }
}

run "accepts_whole_max_size" {
  command = plan

  variables {
    max_size = 10000
  }
}

run "rejects_whole_max_size" {
  command = plan

  variables {
    max_size = 1.5
  }

  expect_failures = [var.max_size]
}

run "accepts_max_size_from_initial_node_count" {
  command = plan

  variables {
    initial_node_count = 5
    max_size           = 5
  }
}

run "rejects_max_size_from_initial_node_count" {
  command = plan

  variables {
    initial_node_count = 5
    max_size           = 4
  }

  expect_failures = [var.max_size]
}

run "accepts_on_demand_group_without_a_policy" {
  command = plan

  variables {
    spot                          = false
    instance_types                = ["m5.large"]
    launch_template_instance_type = "m5.large"
    mixed_instances_policy        = false
  }
}

run "rejects_on_demand_group_without_a_policy" {
  command = plan

  variables {
    spot                          = false
    instance_types                = ["m5.large", "c5.large"]
    launch_template_instance_type = "m5.large"
    mixed_instances_policy        = false
  }

  expect_failures = [var.mixed_instances_policy]
}

run "accepts_whole_on_demand_base_capacity" {
  command = plan

  variables {
    on_demand_base_capacity = 3
  }
}

run "rejects_whole_on_demand_base_capacity" {
  command = plan

  variables {
    on_demand_base_capacity = 1.5
  }

  expect_failures = [var.on_demand_base_capacity]
}

run "accepts_on_demand_base_capacity_of_spot" {
  command = plan

  variables {
    on_demand_base_capacity = 3
  }
}

run "rejects_on_demand_base_capacity_of_spot" {
  command = plan

  variables {
    spot                    = false
    on_demand_base_capacity = 3
  }

  expect_failures = [var.on_demand_base_capacity]
}

run "accepts_percentage_below_100" {
  command = plan

  variables {
    on_demand_percentage_above_base_capacity = 99
  }
}

run "rejects_percentage_below_100" {
  command = plan

  variables {
    on_demand_percentage_above_base_capacity = 100
  }

  expect_failures = [var.on_demand_percentage_above_base_capacity]
}

run "accepts_percentage_of_spot" {
  command = plan

  variables {
    on_demand_percentage_above_base_capacity = 50
  }
}

run "rejects_percentage_of_spot" {
  command = plan

  variables {
    spot                                     = false
    on_demand_percentage_above_base_capacity = 50
  }

  expect_failures = [var.on_demand_percentage_above_base_capacity]
}

run "accepts_strategy_of_groups" {
  command = plan

  variables {
    spot_allocation_strategy = "capacity-optimized"
  }
}

run "rejects_strategy_of_groups" {
  command = plan

  variables {
    spot_allocation_strategy = "diversified"
  }

  expect_failures = [var.spot_allocation_strategy]
}

run "accepts_each_group_tag_once" {
  command = plan

  variables {
    group_tags = [{ key = "a", value = "b" }, { key = "c", value = "" }]
  }
}

run "rejects_each_group_tag_once" {
  command = plan

  variables {
    group_tags = [{ key = "a", value = "b" }, { key = "a", value = "c" }]
  }

  expect_failures = [var.group_tags]
}

run "accepts_50_tags_of_a_group" {
  command = plan

  variables {
    tags = { for i in range(36) : "t${i}" => "v" }
  }
}

run "rejects_51_tags_of_a_group" {
  command = plan

  variables {
    tags = { for i in range(37) : "t${i}" => "v" }
  }

  expect_failures = [aws_autoscaling_group.this]
}
