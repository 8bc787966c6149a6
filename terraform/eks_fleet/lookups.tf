# What is looked up when planning, so that a review sees what is meant: images by alias, subnets and security groups by
# tags. The file is the same in eks_fleet, eks_group and fleets. Each says what it asks for, by keys of its own, in
# local.image_lookups, local.subnet_lookups and local.security_group_lookups; where these are empty, nothing is asked.
locals {
  aliases = {
    for key, image in local.image_lookups : key => {
      family       = split("@", image.ami)[0]
      version      = split("@", image.ami)[1]
      architecture = image.architecture
      kubernetes   = image.kubernetes_version != "" ? image.kubernetes_version : one(data.aws_eks_cluster.this[*].version)
      variant      = startswith(image.ami, "al2023@") ? "standard" : trimprefix(split("@", image.ami)[0], "al2023-")
    }
  }

  # Source: the public parameters that AWS documents for EKS optimized images and for Bottlerocket.
  ami_parameters = {
    for key, alias in local.aliases : key => startswith(alias.family, "al2023") ? join("/", [
      "/aws/service/eks/optimized-ami", alias.kubernetes, "amazon-linux-2023", alias.architecture, alias.variant,
      alias.version == "latest" ? "recommended" : "amazon-eks-node-al2023-${alias.architecture}-${alias.variant}-${alias.kubernetes}-${alias.version}",
      "image_id",
      ]) : join("/", [
      "/aws/service/bottlerocket", "aws-k8s-${alias.kubernetes}${endswith(alias.family, "-nvidia") ? "-nvidia" : ""}",
      alias.architecture, trimprefix(alias.version, "v"), "image_id",
    ])
  }

  found_images = { for key, parameter in data.aws_ssm_parameter.ami : key => parameter.insecure_value }
  # All of a zone, for messages; EC2 takes one of them.
  found_subnets = {
    for key, found in data.aws_subnets.tagged : key => tomap({
      for zone, ids in { for id in found.ids : data.aws_subnet.tagged[id].availability_zone => id... } : zone => sort(ids)
    })
  }
  found_security_groups = { for key, found in data.aws_security_groups.tagged : key => sort(found.ids) }
}

data "aws_eks_cluster" "this" {
  count = anytrue([for image in local.image_lookups : image.kubernetes_version == ""]) ? 1 : 0

  name = var.cluster_name
}

data "aws_ssm_parameter" "ami" {
  for_each = local.ami_parameters

  name = each.value
}

data "aws_subnets" "tagged" {
  for_each = local.subnet_lookups

  tags = each.value

  filter {
    name   = "state"
    values = ["available"]
  }
}

data "aws_subnet" "tagged" {
  for_each = toset(flatten([for found in data.aws_subnets.tagged : found.ids]))

  id = each.value
}

data "aws_security_groups" "tagged" {
  for_each = local.security_group_lookups

  tags = each.value
}
