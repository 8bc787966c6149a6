# Each rule of the variables, broken once.
mock_provider "aws" {}

variables {
  cluster_name              = "analytics"
  cluster_oidc_provider_arn = "arn:aws:iam::123456789012:oidc-provider/oidc.eks.us-west-2.amazonaws.com/id/ABC"
}

run "rejects_a_cluster_name_that_is_no_label" {
  command         = plan
  expect_failures = [var.cluster_name]

  variables {
    cluster_name = "an*"
  }
}

run "rejects_a_region_that_is_none" {
  command         = plan
  expect_failures = [var.regions]

  variables {
    regions = ["*"]
  }
}

run "accepts_regions_of_every_partition" {
  command = plan

  variables {
    regions = ["us-west-2", "us-gov-west-1", "cn-northwest-1", "us-isob-east-1", "eusc-de-east-1"]
  }
}

run "rejects_an_unknown_identity" {
  command         = plan
  expect_failures = [var.identity]

  variables {
    identity = "node"
  }
}

run "rejects_irsa_without_an_oidc_provider" {
  command         = plan
  expect_failures = [var.cluster_oidc_provider_arn]

  variables {
    cluster_oidc_provider_arn = ""
  }
}

run "rejects_a_namespace_that_is_none" {
  command         = plan
  expect_failures = [var.namespace]

  variables {
    namespace = "*"
  }
}

run "rejects_a_service_account_that_is_none" {
  command         = plan
  expect_failures = [var.service_account]

  variables {
    service_account = "*"
  }
}

run "rejects_a_boundary_that_is_no_policy" {
  command         = plan
  expect_failures = [var.permissions_boundary_arn]

  variables {
    permissions_boundary_arn = "arn:aws:iam::123456789012:role/x"
  }
}

run "rejects_a_bucket_name_that_is_none" {
  command         = plan
  expect_failures = [var.state_bucket]

  variables {
    state_bucket = "Upper"
  }
}

run "rejects_a_state_key_that_is_no_kms_key" {
  command         = plan
  expect_failures = [var.state_kms_key_arn]

  variables {
    state_kms_key_arn = "alias/state"
  }
}

run "rejects_an_image_parameter_that_is_no_arn" {
  command         = plan
  expect_failures = [var.image_parameter_arns]

  variables {
    image_parameter_arns = ["/golden"]
  }
}

run "rejects_pipelines_without_a_state_key" {
  command         = plan
  expect_failures = [var.state_key]

  variables {
    state_bucket = "analytics-state"
    pipelines = {
      oidc_provider_arn = "arn:aws:iam::123456789012:oidc-provider/gitlab.example"
      plan_subjects     = ["a"]
      apply_subjects    = ["b"]
    }
  }
}

run "rejects_pipelines_with_another_provider" {
  command         = plan
  expect_failures = [var.pipelines]

  variables {
    state_bucket = "analytics-state"
    state_key    = "a"
    pipelines = {
      oidc_provider_arn = "arn:aws:iam::123456789012:saml-provider/x"
      plan_subjects     = ["a"]
      apply_subjects    = ["b"]
    }
  }
}

run "rejects_pipelines_without_subjects" {
  command         = plan
  expect_failures = [var.pipelines]

  variables {
    state_bucket = "analytics-state"
    state_key    = "a"
    pipelines = {
      oidc_provider_arn = "arn:aws:iam::123456789012:oidc-provider/gitlab.example"
      plan_subjects     = ["a"]
      apply_subjects    = []
    }
  }
}

run "rejects_pipelines_of_anybody" {
  command         = plan
  expect_failures = [var.pipelines]

  variables {
    state_bucket = "analytics-state"
    state_key    = "a"
    pipelines = {
      oidc_provider_arn = "arn:aws:iam::123456789012:oidc-provider/gitlab.example"
      plan_subjects     = ["*"]
      apply_subjects    = ["b"]
    }
  }
}

run "rejects_pipelines_of_any_owner_with_a_like_name" {
  command         = plan
  expect_failures = [var.pipelines]

  variables {
    state_bucket = "analytics-state"
    state_key    = "a"
    pipelines = {
      oidc_provider_arn = "arn:aws:iam::123456789012:oidc-provider/gitlab.example"
      plan_subjects     = ["repo:team/fleets:*"]
      apply_subjects    = ["repo:team*"]
    }
  }
}

run "accepts_pipelines_of_one_owner" {
  command = plan

  variables {
    state_bucket = "analytics-state"
    state_key    = "a"
    pipelines = {
      oidc_provider_arn = "arn:aws:iam::123456789012:oidc-provider/gitlab.example"
      plan_subjects     = ["repo:team/*", "project_path:team/fleets:ref_type:branch:ref:*"]
      apply_subjects    = ["repo:team/fleets:environment:fleets"]
    }
  }
}

run "rejects_pipelines_without_a_bucket" {
  command         = plan
  expect_failures = [var.pipelines]

  variables {
    state_key = "a"
    pipelines = {
      oidc_provider_arn = "arn:aws:iam::123456789012:oidc-provider/gitlab.example"
      plan_subjects     = ["a"]
      apply_subjects    = ["b"]
    }
  }
}

run "rejects_a_node_role_that_is_none" {
  command         = plan
  expect_failures = [var.node_role_arn]

  variables {
    node_role_arn = "arn:aws:iam::123456789012:instance-profile/x"
  }
}

run "rejects_a_role_of_another_service" {
  command         = plan
  expect_failures = [var.service_linked_roles]

  variables {
    service_linked_roles = ["eks.amazonaws.com"]
  }
}

run "rejects_a_recording_bucket_that_is_none" {
  command         = plan
  expect_failures = [var.recording]

  variables {
    recording = { bucket = "*" }
  }
}

run "rejects_a_recording_prefix_that_matches_others" {
  command         = plan
  expect_failures = [var.recording]

  variables {
    recording = { bucket = "records", prefix = "team/*" }
  }
}

run "accepts_a_bucket_to_record_in" {
  command = plan

  variables {
    recording = { bucket = "records", prefix = "team/analytics" }
  }

  assert {
    condition     = strcontains(aws_iam_role_policy.capacity_loop_recording[0].policy, "records/team/analytics/demand-*")
    error_message = "The policy has to name the bucket and the prefix."
  }
}
