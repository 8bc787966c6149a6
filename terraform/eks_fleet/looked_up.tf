# Where images, subnets and security groups come from: ids that are given, what the caller looked up, or lookups.tf.
locals {
  looks_up     = var.looked_up == null
  ami_is_alias = strcontains(var.ami, "@")

  image_lookups = { for ami in [var.ami] : "own" => {
    ami                = ami
    architecture       = var.architecture
    kubernetes_version = var.kubernetes_version
  } if local.looks_up && local.ami_is_alias }
  subnet_lookups         = { for tags in [var.subnet_tags] : "own" => tags if local.looks_up && length(tags) > 0 }
  security_group_lookups = { for tags in [var.security_group_tags] : "own" => tags if local.looks_up && length(tags) > 0 }

  found = local.looks_up ? {
    image_id           = one(values(local.found_images))
    subnet_ids         = one(values(local.found_subnets))
    security_group_ids = one(values(local.found_security_groups))
  } : var.looked_up

  image_id       = local.ami_is_alias ? local.found.image_id : var.ami
  tagged_subnets = length(var.subnet_tags) == 0 || local.found.subnet_ids == null ? {} : local.found.subnet_ids
  subnet_of_zone = length(var.subnet_tags) == 0 ? var.private_subnet_ids : {
    for zone, ids in local.tagged_subnets : zone => sort(ids)[0]
  }
  zones_with_several_subnets = [for zone, ids in local.tagged_subnets : "${zone}: ${join(", ", sort(ids))}" if length(ids) > 1]
  tagged_security_groups = (
    length(var.security_group_tags) == 0 || local.found.security_group_ids == null ? [] : sort(local.found.security_group_ids)
  )
}
