# Equal aliases and tags of several fleets are looked up once. The provider is a mock, its answers are below; the tests
# against the emulated AWS count the requests.
mock_provider "aws" {
  override_data {
    target = data.aws_eks_cluster.this
    values = { version = "1.34" }
  }

  override_data {
    target = data.aws_ssm_parameter.ami["al2023@latest x86_64"]
    values = { insecure_value = "ami-0aaa" }
  }

  override_data {
    target = data.aws_ssm_parameter.ami["al2023@latest arm64 1.35"]
    values = { insecure_value = "ami-0bbb" }
  }

  override_data {
    target = data.aws_subnets.tagged["team=*,tier=nodes"]
    values = { ids = ["subnet-0bb", "subnet-0aa"] }
  }

  override_data {
    target = data.aws_subnets.tagged["a\\=b=c\\,d"]
    values = { ids = ["subnet-0bb"] }
  }

  override_data {
    target = data.aws_subnet.tagged["subnet-0aa"]
    values = { id = "subnet-0aa", availability_zone = "us-west-2a" }
  }

  override_data {
    target = data.aws_subnet.tagged["subnet-0bb"]
    values = { id = "subnet-0bb", availability_zone = "us-west-2b" }
  }

  override_data {
    target = data.aws_security_groups.tagged["tier=nodes"]
    values = { ids = ["sg-0bb", "sg-0aa"] }
  }
}

variables {
  cluster_name = "analytics"
}

run "accepts_fleets_that_share_what_they_look_up" {
  command = plan

  variables {
    fleets = {
      "primary-small"  = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "memory", ami = "al2023@latest", security_group_tags = { tier = "nodes" }, subnet_tags = { tier = "nodes", team = "*" } }
      "primary-medium" = { sector_label = "primary", node_pool_size = "medium", node_pool_kind = "memory", ami = "al2023@latest", architecture = "x86_64", security_group_tags = { tier = "nodes" }, subnet_tags = { team = "*", tier = "nodes" } }
      "primary-large"  = { sector_label = "primary", node_pool_size = "large", node_pool_kind = "memory", ami = "al2023@latest", architecture = "arm64", kubernetes_version = "1.35", security_group_id = "sg-0cc", subnet_tags = { "a=b" = "c,d" }, auto_scaling_group = "analytics-primary-large", max_size = 20 }
      "primary-xlarge" = { sector_label = "primary", node_pool_size = "xlarge", node_pool_kind = "memory", ami = "ami-0cc", security_group_id = "sg-0cc", private_subnet_ids = { us-west-2a = "subnet-0cc" } }
    }
  }

  assert {
    condition = (
      length(data.aws_ssm_parameter.ami) == 2 && length(data.aws_subnets.tagged) == 2
      && length(data.aws_subnet.tagged) == 2 && length(data.aws_security_groups.tagged) == 1 && length(data.aws_eks_cluster.this) == 1
    )
    error_message = "AWS is asked more than once for the same, or not for what differs"
  }

  assert {
    condition     = data.aws_ssm_parameter.ami["al2023@latest x86_64"].name == "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/standard/recommended/image_id"
    error_message = "the newest image of the cluster's version is not asked for"
  }

  assert {
    condition     = output.image_id == { primary-large = "ami-0bbb", primary-medium = "ami-0aaa", primary-small = "ami-0aaa", primary-xlarge = "ami-0cc" }
    error_message = "a fleet or group has the image of another"
  }

  assert {
    condition = output.subnet_ids == {
      primary-large  = { us-west-2b = "subnet-0bb" }
      primary-medium = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" }
      primary-small  = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" }
      primary-xlarge = { us-west-2a = "subnet-0cc" }
    }
    error_message = "a fleet or group has the subnets of another"
  }
}

run "accepts_fleets_that_look_up_nothing" {
  command = plan

  variables {
    fleets = {
      "primary-small" = { sector_label = "primary", node_pool_size = "small", node_pool_kind = "memory", ami = "ami-0ab", security_group_id = "sg-0cc", private_subnet_ids = { us-west-2a = "subnet-0cc" } }
    }
  }

  assert {
    condition     = length(data.aws_eks_cluster.this) + length(data.aws_ssm_parameter.ami) + length(data.aws_subnets.tagged) == 0
    error_message = "AWS is asked for what is given"
  }
}
