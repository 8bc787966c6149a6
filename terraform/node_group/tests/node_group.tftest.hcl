# What a group says of its nodes, and each rule of the variables broken once. The provider is a mock: no run here proves
# what EKS answers.
mock_provider "aws" {
  mock_resource "aws_eks_node_group" {
    defaults = {
      resources = [{ autoscaling_groups = [{ name = "eks-web-small" }], remote_access_security_group_id = "" }]
    }
  }
}

variables {
  cluster_name   = "analytics"
  sector_label   = "web"
  node_pool_size = "small"
  instance_types = ["m6i.xlarge"]
  max_size       = 50
  subnet_ids     = ["subnet-0aa"]
  node_role_arn  = "arn:aws:iam::123456789012:role/node"
}

run "accepts_a_group_with_labels_and_taints" {
  command = apply

  variables {
    cluster_name   = "analytics"
    sector_label   = "web"
    node_pool_size = "small"
    node_pool_kind = "memory"
    min_size       = 0
    max_size       = 10
    subnet_ids     = ["subnet-0aa", "subnet-0bb"]
    instance_types = ["m6i.xlarge", "m5.xlarge"]
    node_role_arn  = "arn:aws:iam::123456789012:role/node"
    node_labels    = { team = "data" }
    node_taints    = [{ key = "dedicated", value = "web", effect = "NoSchedule" }]

    max_unavailable_percentage = 25
  }

  assert {
    condition     = aws_eks_node_group.this.update_config[0].max_unavailable_percentage == 25
    error_message = "EKS would replace another share of the nodes at a time"
  }

  assert {
    condition     = output.auto_scaling_group == "eks-web-small"
    error_message = "the group's name is not the one that EKS gave"
  }

  assert {
    condition     = aws_autoscaling_group_tag.this["k8s.io/cluster-autoscaler/node-template/taint/dedicated"].tag[0].value == "web:NoSchedule"
    error_message = "an empty group would look as if it had no taint"
  }

  assert {
    condition     = output.group_tags["k8s.io/cluster-autoscaler/node-template/label/sector"] == "web" && output.group_tags["k8s.io/cluster-autoscaler/node-template/label/team"] == "data" && output.node_labels.kind == "memory"
    error_message = "an empty group would look as if it had no labels"
  }

  assert {
    condition     = one(aws_eks_node_group.this.taint).effect == "NO_SCHEDULE" && aws_eks_node_group.this.capacity_type == "SPOT" && output.node_labels.lifecycle == "Ec2Spot"
    error_message = "the nodes are not what the tags say"
  }
}

run "rejects_a_cluster_name_that_is_no_label" {
  command         = plan
  expect_failures = [var.cluster_name]

  variables {
    cluster_name = ""
  }
}

run "rejects_a_sector_that_is_no_label" {
  command         = plan
  expect_failures = [var.sector_label]

  variables {
    sector_label = "a b"
  }
}

run "rejects_a_size_that_is_no_label" {
  command         = plan
  expect_failures = [var.node_pool_size]

  variables {
    node_pool_size = "a b"
  }
}

run "rejects_a_minimum_below_zero" {
  command         = plan
  expect_failures = [var.min_size]

  variables {
    min_size = -1
  }
}

run "rejects_a_maximum_below_the_minimum" {
  command         = plan
  expect_failures = [var.max_size]

  variables {
    min_size = 3
    max_size = 2
  }
}

run "rejects_a_share_of_nodes_over_100_percent" {
  command         = plan
  expect_failures = [var.max_unavailable_percentage]

  variables {
    max_unavailable_percentage = 101
  }
}

run "rejects_no_subnets" {
  command         = plan
  expect_failures = [var.subnet_ids]

  variables {
    subnet_ids = []
  }
}

run "rejects_no_instance_types" {
  command         = plan
  expect_failures = [var.instance_types]

  variables {
    instance_types = []
  }
}

run "rejects_a_node_role_that_is_none" {
  command         = plan
  expect_failures = [var.node_role_arn]

  variables {
    node_role_arn = "node"
  }
}

run "rejects_labels_that_the_module_sets" {
  command         = plan
  expect_failures = [var.node_labels]

  variables {
    node_labels = { sector = "other" }
  }
}

run "rejects_an_unknown_effect" {
  command         = plan
  expect_failures = [var.node_taints]

  variables {
    node_taints = [{ key = "a", effect = "NO_SCHEDULE" }]
  }
}

run "rejects_a_kind_that_is_no_label" {
  command         = plan
  expect_failures = [var.node_pool_kind]

  variables {
    node_pool_kind = "my kind"
  }
}
