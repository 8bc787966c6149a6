# The role of the capacity loop: reads what plans are made from, changes the size of its own cluster's fleets, ends their
# instances, and nothing else. The same document is proven against the sandbox, action by action.
data "aws_partition" "current" {}

locals {
  partition            = data.aws_partition.current.partition
  permissions_boundary = var.permissions_boundary_arn == "" ? null : var.permissions_boundary_arn
  cluster_issuer       = try(regex("oidc-provider/(.+)$", var.cluster_oidc_provider_arn)[0], "")

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
  name                 = "${var.cluster_name}-fleet-reconciler"
  description          = "Capacity loop of the fleet reconciler in EKS cluster ${var.cluster_name}"
  assume_role_policy   = jsonencode({ Version = "2012-10-17", Statement = [local.trust[var.identity]] })
  permissions_boundary = local.permissions_boundary
  tags                 = var.tags
}

resource "aws_iam_role_policy" "capacity_loop" {
  name   = "capacity-loop"
  role   = aws_iam_role.capacity_loop.id
  policy = templatefile("${path.module}/policies/capacity_loop.json", { cluster = var.cluster_name, partition = local.partition })
}

resource "aws_eks_pod_identity_association" "capacity_loop" {
  for_each = toset(var.identity == "pod-identity" ? [var.service_account] : [])

  cluster_name    = var.cluster_name
  namespace       = var.namespace
  service_account = each.value
  role_arn        = aws_iam_role.capacity_loop.arn
  tags            = var.tags
}
