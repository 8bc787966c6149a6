# What is looked up when planning, so that a review sees what is meant: images by alias, subnets and security groups by
# tags. Nothing is asked where ids are given.
locals {
  alias_parts = split("@", var.ami)
  ami_alias   = length(local.alias_parts) == 2 ? [{ family = local.alias_parts[0], version = local.alias_parts[1] }] : []
  kubernetes_version = (
    var.kubernetes_version != "" ? var.kubernetes_version : one(data.aws_eks_cluster.this[*].version)
  )

  # Source: the public parameters that AWS documents for EKS optimized images and for Bottlerocket.
  ami_parameter = one([
    for alias in local.ami_alias : startswith(alias.family, "al2023") ? join("/", [
      "/aws/service/eks/optimized-ami", local.kubernetes_version, "amazon-linux-2023", var.architecture, local.al2023_variant,
      alias.version == "latest" ? "recommended" : "amazon-eks-node-al2023-${var.architecture}-${local.al2023_variant}-${local.kubernetes_version}-${alias.version}",
      "image_id",
      ]) : join("/", [
      "/aws/service/bottlerocket", "aws-k8s-${local.kubernetes_version}${endswith(alias.family, "-nvidia") ? "-nvidia" : ""}",
      var.architecture, trimprefix(alias.version, "v"), "image_id",
    ])
  ])
  al2023_variant = one([
    for alias in local.ami_alias : alias.family == "al2023" ? "standard" : trimprefix(alias.family, "al2023-")
  ])
  image_id = length(local.ami_alias) == 0 ? var.ami : one(data.aws_ssm_parameter.ami[*].insecure_value)

  tagged_subnets = {
    for subnet in data.aws_subnet.tagged : subnet.availability_zone => subnet.id...
  }
  subnet_of_zone = length(var.subnet_tags) == 0 ? var.private_subnet_ids : {
    for zone, ids in local.tagged_subnets : zone => sort(ids)[0]
  }
  zones_with_several_subnets = [for zone, ids in local.tagged_subnets : "${zone}: ${join(", ", sort(ids))}" if length(ids) > 1]
  tagged_security_groups     = sort(flatten(data.aws_security_groups.tagged[*].ids))
}

data "aws_eks_cluster" "this" {
  count = length(local.ami_alias) > 0 && var.kubernetes_version == "" ? 1 : 0

  name = var.cluster_name
}

data "aws_ssm_parameter" "ami" {
  count = length(local.ami_alias)

  name = local.ami_parameter
}

data "aws_subnets" "tagged" {
  count = length(var.subnet_tags) > 0 ? 1 : 0

  tags = var.subnet_tags

  filter {
    name   = "state"
    values = ["available"]
  }
}

data "aws_subnet" "tagged" {
  for_each = toset(flatten(data.aws_subnets.tagged[*].ids))

  id = each.value
}

data "aws_security_groups" "tagged" {
  count = length(var.security_group_tags) > 0 ? 1 : 0

  tags = var.security_group_tags
}
