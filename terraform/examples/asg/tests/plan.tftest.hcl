# The example plans as a whole. The provider is a mock: no run here proves what EKS answers.
mock_provider "aws" {
  mock_resource "aws_eks_node_group" {
    defaults = {
      resources = [{ autoscaling_groups = [{ name = "eks-group" }], remote_access_security_group_id = "" }]
    }
  }
}

run "accepts_its_defaults" {
  command = apply

  variables {
    cluster_name  = "analytics"
    node_role_arn = "arn:aws:iam::123456789012:role/node"
    subnet_ids    = ["subnet-0aa"]
  }

  assert {
    condition     = keys(output.auto_scaling_groups) == ["batch-large", "web-small"]
    error_message = "a group is missing"
  }
}
