# The role of the capacity loop: reads what plans are made from, changes the size of its own cluster's fleets, ends their
# instances, and nothing else. The same document is proven against the sandbox, action by action.
data "aws_partition" "current" {}

data "aws_region" "current" {}

locals {
  partition            = data.aws_partition.current.partition
  permissions_boundary = var.permissions_boundary_arn == "" ? null : var.permissions_boundary_arn
  # IAM takes 64 characters for a role's name, EventBridge for a rule's, EKS 100 for a cluster's. A name that is too long
  # is cut, with its digest at the end, so that no two clusters share one.
  digest      = substr(sha256(var.cluster_name), 0, 8)
  role_prefix = "${length(var.cluster_name) <= 41 ? var.cluster_name : "${substr(var.cluster_name, 0, 32)}-${local.digest}"}-fleet-reconciler"
  rule_prefix = "${length(var.cluster_name) <= 29 ? var.cluster_name : "${substr(var.cluster_name, 0, 20)}-${local.digest}"}-fleet-reconciler"

  cluster_issuer = try(regex("oidc-provider/(.+)$", var.cluster_oidc_provider_arn)[0], "")

  trust = {
    irsa = {
      Effect    = "Allow"
      Action    = "sts:AssumeRoleWithWebIdentity"
      Principal = { Federated = var.cluster_oidc_provider_arn }
      Condition = {
        StringEquals = {
          "${local.cluster_issuer}:aud" = "sts.amazonaws.com"
          "${local.cluster_issuer}:sub" = "system:serviceaccount:${var.namespace}:${var.service_account}"
        }
      }
    }
    pod-identity = {
      Effect    = "Allow"
      Action    = ["sts:AssumeRole", "sts:TagSession"]
      Principal = { Service = "pods.eks.amazonaws.com" }
      Condition = {
        StringEquals = {
          "aws:RequestTag/eks-cluster-name"           = var.cluster_name
          "aws:RequestTag/kubernetes-namespace"       = var.namespace
          "aws:RequestTag/kubernetes-service-account" = var.service_account
        }
      }
    }
  }
}

resource "aws_iam_role" "capacity_loop" {
  name                 = local.role_prefix
  description          = "Capacity loop of the fleet reconciler in EKS cluster ${var.cluster_name}"
  assume_role_policy   = jsonencode({ Version = "2012-10-17", Statement = [local.trust[var.identity]] })
  permissions_boundary = local.permissions_boundary
  tags                 = var.tags
}

locals {
  policy_values = {
    cluster   = var.cluster_name
    partition = local.partition
    # The file is JSON with a list of one text; further ones follow it with quotes of their own.
    regions = join("\", \"", length(var.regions) > 0 ? var.regions : [data.aws_region.current.id])
  }
}

resource "aws_iam_role_policy" "capacity_loop" {
  name   = "capacity-loop"
  role   = aws_iam_role.capacity_loop.id
  policy = templatefile("${path.module}/policies/capacity_loop.json", local.policy_values)
}

resource "aws_iam_role_policy" "capacity_loop_groups" {
  count = var.auto_scaling_groups ? 1 : 0

  name   = "capacity-loop-groups"
  role   = aws_iam_role.capacity_loop.id
  policy = templatefile("${path.module}/policies/capacity_loop_groups.json", local.policy_values)
}

resource "aws_iam_role_policy" "capacity_loop_recording" {
  count = var.recording == null ? 0 : 1

  name = "capacity-loop-recording"
  role = aws_iam_role.capacity_loop.id
  policy = templatefile("${path.module}/policies/capacity_loop_recording.json", merge(local.policy_values, {
    recording_bucket = var.recording.bucket
    recording_prefix = var.recording.prefix == "" ? "" : "${var.recording.prefix}/"
  }))
}

resource "aws_eks_pod_identity_association" "capacity_loop" {
  for_each = toset(var.identity == "pod-identity" ? [var.service_account] : [])

  cluster_name    = var.cluster_name
  namespace       = var.namespace
  service_account = each.value
  role_arn        = aws_iam_role.capacity_loop.arn
  tags            = var.tags
}

# EC2 launches spot instances and fleets under roles of its own, which an account gets when somebody first uses the
# console for it. The pipelines' roles may not make them, and every fleet would fail until they are there.
resource "aws_iam_service_linked_role" "this" {
  for_each = toset(var.service_linked_roles)

  aws_service_name = each.value
  tags             = var.tags
}
