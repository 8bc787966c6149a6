# What the roles may be assumed by, and what is made at all. The provider is a mock: no run here proves what IAM decides
# (the sandbox tests run the program under these policies).
mock_provider "aws" {
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
}

variables {
  cluster_name              = "analytics"
  cluster_oidc_provider_arn = "arn:aws:iam::123456789012:oidc-provider/oidc.eks.us-west-2.amazonaws.com/id/ABC"
}

run "accepts_irsa_with_defaults" {
  command = plan

  variables {
    cluster_name              = "analytics"
    identity                  = "irsa"
    cluster_oidc_provider_arn = "arn:aws:iam::123456789012:oidc-provider/oidc.eks.us-west-2.amazonaws.com/id/ABC"
    namespace                 = "kube-system"
    service_account           = "reconciler"
    regions                   = ["us-west-2", "us-east-1"]
    permissions_boundary_arn  = "arn:aws:iam::123456789012:policy/boundary"
    service_linked_roles      = ["ec2fleet.amazonaws.com", "spot.amazonaws.com"]
  }

  assert {
    condition     = jsondecode(aws_iam_role.capacity_loop.assume_role_policy).Statement[0].Condition.StringEquals["oidc.eks.us-west-2.amazonaws.com/id/ABC:sub"] == "system:serviceaccount:kube-system:reconciler"
    error_message = "another ServiceAccount could assume the role"
  }

  assert {
    condition     = strcontains(aws_iam_role_policy.capacity_loop.policy, "\"aws:ResourceTag/cluster\": \"analytics\"")
    error_message = "the role could change fleets of other clusters"
  }

  assert {
    condition     = alltrue([for statement in slice(jsondecode(aws_iam_role_policy.capacity_loop.policy).Statement, 1, 3) : statement.Condition.StringEquals["aws:RequestedRegion"] == ["us-west-2", "us-east-1"]])
    error_message = "the role could change fleets of a cluster of the same name in another region"
  }

  assert {
    condition     = length(aws_iam_role_policy.capacity_loop_groups) == 0
    error_message = "the role could change Auto Scaling groups without being asked to"
  }

  assert {
    condition     = length(aws_s3_bucket.state) == 0 && length(aws_iam_role.pipelines) == 0 && length(aws_eks_pod_identity_association.capacity_loop) == 0
    error_message = "something was made that the variables do not ask for"
  }

  assert {
    condition     = aws_sqs_queue.interruptions["analytics-fleet-reconciler"].message_retention_seconds >= 1200
    error_message = "a lifecycle action could be lost by a change of the leader while its node is drained"
  }
}

run "accepts_auto_scaling_groups" {
  command = plan

  variables {
    auto_scaling_groups = true
  }

  assert {
    condition     = strcontains(aws_iam_role_policy.capacity_loop_groups[0].policy, "k8s.io/cluster-autoscaler/analytics") && !strcontains(aws_iam_role_policy.capacity_loop_groups[0].policy, "$${")
    error_message = "the policy of groups is not that of the cluster"
  }
}

run "accepts_pod_identity_without_an_oidc_provider" {
  command = plan

  variables {
    identity                  = "pod-identity"
    cluster_oidc_provider_arn = ""
    interruption_queue        = false
  }

  assert {
    condition     = aws_eks_pod_identity_association.capacity_loop["fleet-reconciler"].namespace == "fleet-reconciler"
    error_message = "the association is missing"
  }

  assert {
    condition     = length(aws_sqs_queue.interruptions) == 0 && length(aws_cloudwatch_event_rule.interruptions) == 0 && output.queue_url == ""
    error_message = "the queue was not wanted"
  }
}

run "accepts_pipelines_with_a_state_bucket" {
  command = plan

  variables {
    state_bucket        = "analytics-state"
    state_kms_key_arn   = "arn:aws:kms:us-west-2:123456789012:key/abc"
    state_key           = "fleets/analytics.tfstate"
    node_role_arn       = "arn:aws:iam::123456789012:role/node"
    auto_scaling_groups = true

    image_parameter_arns = ["arn:aws:ssm:us-west-2:123456789012:parameter/golden"]

    pipelines = {
      oidc_provider_arn = "arn:aws:iam::123456789012:oidc-provider/token.actions.githubusercontent.com"
      plan_subjects     = ["repo:team/fleets:pull_request", "repo:team/fleets:ref:refs/heads/main"]
      apply_subjects    = ["repo:team/fleets:environment:fleets"]
    }
  }

  assert {
    condition     = strcontains(aws_iam_role_policy.pipelines_groups["apply"].policy, "autoscaling:CreateAutoScalingGroup") && !strcontains(aws_iam_role_policy.pipelines_groups["plan"].policy, "Create")
    error_message = "groups can be made by a plan, or not by an apply"
  }

  assert {
    condition     = jsondecode(aws_iam_role.pipelines["apply"].assume_role_policy).Statement[0].Condition.StringLike["token.actions.githubusercontent.com:sub"] == ["repo:team/fleets:environment:fleets"]
    error_message = "something else than the protected environment could apply"
  }

  assert {
    condition     = !strcontains(aws_iam_role_policy.pipelines["plan"].policy, "Create") && !strcontains(aws_iam_role_policy.pipelines["plan"].policy, "Modify")
    error_message = "the role that plans could write"
  }

  assert {
    condition     = strcontains(aws_iam_role_policy.pipelines["apply"].policy, "arn:aws:iam::123456789012:role/node")
    error_message = "the role that applies could hand out other roles"
  }

  assert {
    condition     = keys(aws_iam_role_policy.pipelines_images) == ["apply"] && strcontains(aws_iam_role_policy.pipelines_images["apply"].policy, "parameter/golden")
    error_message = "the parameter that names a group's image cannot be read by the apply, or can by a plan"
  }

  assert {
    condition     = length(aws_iam_role_policy.pipelines_state_key) == 2 && output.state_bucket == "analytics-state"
    error_message = "the encrypted state could not be read"
  }
}

run "accepts_a_state_bucket_that_exists" {
  command = plan

  variables {
    state_key = "fleets/analytics.tfstate"
    pipelines = {
      oidc_provider_arn = "arn:aws:iam::123456789012:oidc-provider/gitlab.example"
      audience          = "https://gitlab.example"
      plan_subjects     = ["project_path:team/fleets:*"]
      apply_subjects    = ["project_path:team/fleets:ref_type:branch:ref:main"]
      state_bucket      = "elsewhere"
    }
  }

  assert {
    condition     = length(aws_s3_bucket.state) == 0 && strcontains(aws_iam_role_policy.pipelines["plan"].policy, "elsewhere")
    error_message = "the bucket that exists is not the one that is used"
  }
}

run "accepts_several_regions_with_a_state_each" {
  command = plan

  variables {
    regions      = ["us-west-2", "us-east-1"]
    state_bucket = "analytics-state"
    state_key    = "fleets.d/analytics.tfstate"
    pipelines = {
      oidc_provider_arn = "arn:aws:iam::123456789012:oidc-provider/token.actions.githubusercontent.com"
      plan_subjects     = ["repo:team/fleets:pull_request"]
      apply_subjects    = ["repo:team/fleets:environment:fleets"]
    }
  }

  assert {
    condition = [for each in jsondecode(aws_iam_role_policy.pipelines["plan"].policy).Statement : each.Resource if each.Sid == "ReadState"] == [[
      "arn:aws:s3:::analytics-state/fleets.d/analytics.tfstate",
      "arn:aws:s3:::analytics-state/fleets.d/analytics-us-east-1.tfstate",
    ]]
    error_message = "the state of a further region could not be read"
  }

  assert {
    condition = [for each in jsondecode(aws_iam_role_policy.pipelines["apply"].policy).Statement : each.Resource if each.Sid == "LockState"] == [[
      "arn:aws:s3:::analytics-state/fleets.d/analytics.tfstate.tflock",
      "arn:aws:s3:::analytics-state/fleets.d/analytics-us-east-1.tfstate.tflock",
    ]]
    error_message = "the state of a further region could not be locked"
  }
}

run "accepts_the_longest_name_of_a_cluster" {
  command = plan

  variables {
    cluster_name = "a-cluster-of-63-characters-in-one-of-its-many-regions-eu-west-1"
    state_bucket = "analytics-state"
    state_key    = "fleets/analytics.tfstate"
    pipelines = {
      oidc_provider_arn = "arn:aws:iam::123456789012:oidc-provider/token.actions.githubusercontent.com"
      plan_subjects     = ["repo:team/fleets:pull_request"]
      apply_subjects    = ["repo:team/fleets:environment:fleets"]
    }
  }

  assert {
    condition     = alltrue([for rule in aws_cloudwatch_event_rule.interruptions : length(rule.name) <= 64])
    error_message = "EventBridge refuses rules with longer names"
  }

  assert {
    condition     = alltrue([for role in aws_iam_role.pipelines : length(role.name) <= 64])
    error_message = "IAM refuses roles with longer names"
  }

  assert {
    condition     = endswith(aws_iam_role.capacity_loop.name, "-${substr(sha256(var.cluster_name), 0, 8)}-fleet-reconciler")
    error_message = "clusters whose names begin alike would share a role"
  }
}
