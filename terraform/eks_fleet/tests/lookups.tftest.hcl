# Images by alias, subnets and security groups by tags: what is asked for, and what comes of the answers. The provider is a
# mock, its answers are below; the tests against the emulated AWS look the same things up over HTTP.
mock_provider "aws" {
  override_data {
    target = data.aws_eks_cluster.this
    values = { version = "1.34" }
  }

  override_data {
    target = data.aws_ssm_parameter.ami
    values = { insecure_value = "ami-0aaa" }
  }

  override_data {
    target = data.aws_subnets.tagged
    values = { ids = ["subnet-0bb", "subnet-0aa"] }
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
    target = data.aws_security_groups.tagged
    values = { ids = ["sg-0bb", "sg-0aa"] }
  }
}

variables {
  cluster_name          = "analytics"
  sector_label          = "primary"
  node_pool_size        = "small"
  node_pool_kind        = "memory"
  ami                   = "al2023@latest"
  instance_profile_name = "analytics-node"
  subnet_tags           = { "kubernetes.io/role/internal-elb" = "1" }
  security_group_tags   = { "kubernetes.io/cluster/analytics" = "*" }
}

run "accepts_everything_looked_up" {
  command = plan

  variables {
    ami                 = "al2023@latest"
    ami_type            = "AL2023"
    subnet_tags         = { "kubernetes.io/role/internal-elb" = "1" }
    security_group_tags = { "kubernetes.io/cluster/analytics" = "*" }
    private_subnet_ids  = {}
    security_group_id   = ""
  }

  assert {
    condition     = data.aws_ssm_parameter.ami["own"].name == "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/standard/recommended/image_id"
    error_message = "the newest image of the cluster's version is not asked for"
  }

  assert {
    condition     = aws_launch_template.this.image_id == "ami-0aaa" && output.image_id == "ami-0aaa"
    error_message = "new nodes do not boot the image that was found"
  }

  assert {
    condition     = output.subnet_ids == { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" }
    error_message = "the fleet does not launch into the subnets that were found"
  }

  assert {
    condition     = toset(aws_launch_template.this.vpc_security_group_ids) == toset(["sg-0aa", "sg-0bb"])
    error_message = "the nodes do not have the security groups that were found"
  }
}

run "accepts_version_and_architecture" {
  command = plan

  variables {
    ami                = "al2023-nvidia@v20260110"
    kubernetes_version = "1.35"
    architecture       = "arm64"
  }

  assert {
    condition     = data.aws_ssm_parameter.ami["own"].name == "/aws/service/eks/optimized-ami/1.35/amazon-linux-2023/arm64/nvidia/amazon-eks-node-al2023-arm64-nvidia-1.35-v20260110/image_id"
    error_message = "the pinned image of the stated version is not asked for"
  }

  assert {
    condition     = length(data.aws_eks_cluster.this) == 0
    error_message = "EKS is asked for a version that is stated"
  }
}

run "accepts_bottlerocket_alias" {
  command = plan

  variables {
    ami              = "bottlerocket@v1.26.1"
    ami_type         = "BOTTLEROCKET"
    cluster_endpoint = "https://api.example"
    cluster_ca       = "Q0E="
  }

  assert {
    condition     = data.aws_ssm_parameter.ami["own"].name == "/aws/service/bottlerocket/aws-k8s-1.34/x86_64/1.26.1/image_id"
    error_message = "the pinned Bottlerocket is not asked for"
  }
}

run "accepts_a_zone_of_the_subnets_found" {
  command = plan

  variables {
    zone = "us-west-2b"
  }

  assert {
    condition     = output.subnet_ids == { us-west-2b = "subnet-0bb" }
    error_message = "a fleet of one zone launches into others"
  }
}

run "rejects_unknown_family" {
  command = plan

  variables {
    ami = "ubuntu@latest"
  }

  expect_failures = [var.ami]
}

run "rejects_bottlerocket_alias_of_another_type" {
  command = plan

  variables {
    ami = "bottlerocket@latest"
  }

  expect_failures = [var.ami_type]
}

run "rejects_al2023_alias_of_another_type" {
  command = plan

  variables {
    ami_type         = "BOTTLEROCKET"
    cluster_endpoint = "https://api.example"
    cluster_ca       = "Q0E="
  }

  expect_failures = [var.ami_type]
}

run "rejects_unknown_architecture" {
  command = plan

  variables {
    architecture = "amd64"
  }

  expect_failures = [var.architecture]
}

run "rejects_version_with_patch" {
  command = plan

  variables {
    kubernetes_version = "1.35.2"
  }

  expect_failures = [var.kubernetes_version]
}

run "rejects_subnet_tags_beside_ids" {
  command = plan

  variables {
    private_subnet_ids = { us-west-2a = "subnet-0aa" }
  }

  expect_failures = [var.private_subnet_ids]
}

run "rejects_subnet_tags_beside_overrides" {
  command = plan

  variables {
    instance_types = ["m5.2xlarge"]
    overrides      = [{ instance_type = "m5.2xlarge", subnet_id = "subnet-0aa" }]
  }

  expect_failures = [var.subnet_tags]
}

run "rejects_security_group_tags_beside_an_id" {
  command = plan

  variables {
    security_group_id = "sg-0aa"
  }

  expect_failures = [var.security_group_id]
}

run "rejects_two_subnets_of_one_zone" {
  command = plan

  override_data {
    target = data.aws_subnet.tagged["subnet-0bb"]
    values = { id = "subnet-0bb", availability_zone = "us-west-2a" }
  }

  expect_failures = [aws_launch_template.this]
}

run "rejects_tags_that_no_subnet_has" {
  command = plan

  override_data {
    target = data.aws_subnets.tagged
    values = { ids = [] }
  }

  expect_failures = [aws_launch_template.this]
}

run "rejects_tags_that_no_security_group_has" {
  command = plan

  override_data {
    target = data.aws_security_groups.tagged
    values = { ids = [] }
  }

  expect_failures = [aws_launch_template.this]
}

run "accepts_what_the_caller_looked_up" {
  command = plan

  variables {
    looked_up = {
      image_id           = "ami-0cc"
      subnet_ids         = { us-west-2a = ["subnet-0cc"], us-west-2b = ["subnet-0dd"] }
      security_group_ids = ["sg-0cc"]
    }
  }

  assert {
    condition = (
      length(data.aws_eks_cluster.this) == 0 && length(data.aws_ssm_parameter.ami) == 0 && length(data.aws_subnets.tagged) == 0
      && length(data.aws_subnet.tagged) == 0 && length(data.aws_security_groups.tagged) == 0
    )
    error_message = "AWS is asked for what the caller looked up"
  }

  assert {
    condition     = aws_launch_template.this.image_id == "ami-0cc" && output.subnet_ids == { us-west-2a = "subnet-0cc", us-west-2b = "subnet-0dd" }
    error_message = "what the caller looked up is not used"
  }

  assert {
    condition     = toset(aws_launch_template.this.vpc_security_group_ids) == toset(["sg-0cc"])
    error_message = "the security groups that the caller looked up are not used"
  }
}

run "rejects_looked_up_without_what_is_asked_for" {
  command = plan

  variables {
    looked_up = { image_id = "ami-0cc", security_group_ids = ["sg-0cc"] }
  }

  expect_failures = [var.looked_up]
}

run "rejects_two_looked_up_subnets_of_one_zone" {
  command = plan

  variables {
    looked_up = {
      image_id           = "ami-0cc"
      subnet_ids         = { us-west-2a = ["subnet-0cc", "subnet-0dd"] }
      security_group_ids = ["sg-0cc"]
    }
  }

  expect_failures = [aws_launch_template.this]
}
