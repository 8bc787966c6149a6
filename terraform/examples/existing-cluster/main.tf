# What a cluster that exists needs for the reconciler: its roles, its queue, the bucket of the state, and the pipelines'
# roles for a config repository on GitHub. Fleets come from the sector config through the second loop.
provider "aws" {
  region = var.region
}

module "reconciler" {
  source = "../../reconciler"

  cluster_name              = var.cluster_name
  cluster_oidc_provider_arn = var.cluster_oidc_provider_arn
  node_role_arn             = var.node_role_arn
  state_bucket              = var.state_bucket
  state_key                 = "fleets/${var.cluster_name}.tfstate"
  auto_scaling_groups       = var.auto_scaling_groups

  pipelines = {
    oidc_provider_arn = local.github_oidc_provider_arn
    plan_subjects     = ["repo:${var.repository}:pull_request", "repo:${var.repository}:ref:refs/heads/main"]
    apply_subjects    = ["repo:${var.repository}:environment:fleets"]
  }
}

# An account has one provider per forge: most have it already.
resource "aws_iam_openid_connect_provider" "github" {
  for_each = toset(var.github_oidc_provider_arn == "" ? ["https://token.actions.githubusercontent.com"] : [])

  url            = each.value
  client_id_list = ["sts.amazonaws.com"]
}

locals {
  github_oidc_provider_arn = one(concat(values(aws_iam_openid_connect_provider.github)[*].arn, compact([var.github_oidc_provider_arn])))
}
