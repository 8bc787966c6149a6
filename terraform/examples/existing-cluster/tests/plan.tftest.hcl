# The example plans as a whole. The provider is a mock: the sandbox tests apply it.
mock_provider "aws" {
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
  mock_resource "aws_iam_openid_connect_provider" {
    defaults = { arn = "arn:aws:iam::123456789012:oidc-provider/token.actions.githubusercontent.com" }
  }
}

run "accepts_its_variables" {
  command = plan

  variables {
    cluster_name              = "analytics"
    cluster_oidc_provider_arn = "arn:aws:iam::123456789012:oidc-provider/oidc.eks.us-west-2.amazonaws.com/id/ABC"
    node_role_arn             = "arn:aws:iam::123456789012:role/node"
    state_bucket              = "analytics-state"
    repository                = "team/fleets"
  }

  assert {
    condition     = output.reconciler.state_bucket == "analytics-state"
    error_message = "the state's bucket is missing"
  }
}

run "accepts_a_provider_that_exists" {
  command = plan

  variables {
    cluster_name              = "analytics"
    cluster_oidc_provider_arn = "arn:aws:iam::123456789012:oidc-provider/oidc.eks.us-west-2.amazonaws.com/id/ABC"
    node_role_arn             = "arn:aws:iam::123456789012:role/node"
    state_bucket              = "analytics-state"
    repository                = "team/fleets"
    github_oidc_provider_arn  = "arn:aws:iam::123456789012:oidc-provider/token.actions.githubusercontent.com"
  }

  assert {
    condition     = length(aws_iam_openid_connect_provider.github) == 0
    error_message = "IAM refuses a second provider of one address"
  }
}

run "accepts_auto_scaling_groups" {
  command = plan

  variables {
    cluster_name              = "analytics"
    cluster_oidc_provider_arn = "arn:aws:iam::123456789012:oidc-provider/oidc.eks.us-west-2.amazonaws.com/id/ABC"
    node_role_arn             = "arn:aws:iam::123456789012:role/node"
    state_bucket              = "analytics-state"
    repository                = "team/fleets"
    auto_scaling_groups       = true
  }
}
