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

  pipelines = {
    oidc_provider_arn = aws_iam_openid_connect_provider.github.arn
    plan_subjects     = ["repo:${var.repository}:pull_request", "repo:${var.repository}:ref:refs/heads/main"]
    apply_subjects    = ["repo:${var.repository}:environment:fleets"]
  }
}

resource "aws_iam_openid_connect_provider" "github" {
  url            = "https://token.actions.githubusercontent.com"
  client_id_list = ["sts.amazonaws.com"]
}
