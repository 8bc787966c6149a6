# Two roles for the config repository's pipelines: one that reads, for pull requests and plans; one that writes, for the
# apply on the protected branch. Neither has a key: the forge's OIDC tokens are taken.
locals {
  pipelines       = var.pipelines == null ? {} : { plan = var.pipelines.plan_subjects, apply = var.pipelines.apply_subjects }
  forge_issuer    = try(regex("oidc-provider/(.+)$", var.pipelines.oidc_provider_arn)[0], "")
  pipeline_bucket = try(coalesce(var.pipelines.state_bucket, var.state_bucket), "")

  # The state of each further region is beside that of the first: fleets.tfstate, fleets-us-east-1.tfstate.
  state_key_parts = regex("^(.*?[^/]|)([.][^./]+|)$", var.state_key)
  further_regions = try(slice(var.regions, 1, length(var.regions)), [])
  state_keys      = concat([var.state_key], [for region in local.further_regions : join("-${region}", local.state_key_parts)])
  states          = [for key in local.state_keys : "arn:${local.partition}:s3:::${local.pipeline_bucket}/${key}"]

  pipeline_values = {
    cluster   = var.cluster_name
    partition = local.partition
    bucket    = local.pipeline_bucket
    # The file is JSON with a list of one text; further ones follow it with quotes of their own.
    states        = join("\", \"", local.states)
    locks         = join("\", \"", [for state in local.states : "${state}.tflock"])
    node_role_arn = var.node_role_arn == "" ? "arn:${local.partition}:iam::000000000000:role/none" : var.node_role_arn
  }
}

resource "aws_iam_role" "pipelines" {
  for_each = local.pipelines

  name        = "${local.role_prefix}-${each.key}"
  description = "terraform ${each.key} of the fleets of EKS cluster ${var.cluster_name}"
  # An apply may wait for its approval and for a lock.
  max_session_duration = each.key == "apply" ? 10800 : 3600
  permissions_boundary = local.permissions_boundary
  tags                 = var.tags

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRoleWithWebIdentity"
      Principal = { Federated = var.pipelines.oidc_provider_arn }
      Condition = {
        StringEquals = { "${local.forge_issuer}:aud" = var.pipelines.audience }
        StringLike   = { "${local.forge_issuer}:sub" = each.value }
      }
    }]
  })
}

resource "aws_iam_role_policy" "pipelines" {
  for_each = aws_iam_role.pipelines

  name   = "terraform-${each.key}"
  role   = each.value.id
  policy = templatefile("${path.module}/policies/ci_${each.key}.json", local.pipeline_values)
}

resource "aws_iam_role_policy" "pipelines_groups" {
  for_each = var.auto_scaling_groups ? aws_iam_role.pipelines : {}

  name   = "terraform-${each.key}-groups"
  role   = each.value.id
  policy = templatefile("${path.module}/policies/ci_${each.key}_groups.json", local.pipeline_values)
}

resource "aws_iam_role_policy" "pipelines_state_key" {
  for_each = var.state_kms_key_arn == "" ? {} : aws_iam_role.pipelines

  name = "state-key"
  role = each.value.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid      = each.key == "apply" ? "ReadAndWriteTheEncryptedState" : "ReadTheEncryptedState"
      Effect   = "Allow"
      Action   = each.key == "apply" ? ["kms:Decrypt", "kms:GenerateDataKey"] : ["kms:Decrypt"]
      Resource = var.state_kms_key_arn
    }]
  })
}

# Whoever makes or changes a group has to be able to read the parameter that its launch template names.
resource "aws_iam_role_policy" "pipelines_images" {
  for_each = { for each, role in aws_iam_role.pipelines : each => role if each == "apply" && length(var.image_parameter_arns) > 0 }

  name = "image-parameters"
  role = each.value.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid      = "ReadImageParameters"
      Effect   = "Allow"
      Action   = "ssm:GetParameters"
      Resource = var.image_parameter_arns
    }]
  })
}
