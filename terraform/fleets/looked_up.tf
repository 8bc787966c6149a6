# Equal aliases and equal tags are looked up once, however many fleets of the set have them: a hundred fleets with one
# selector would otherwise ask AWS a hundred times at each plan.
locals {
  image_of = {
    for name, fleet in var.fleets : name => {
      ami                = fleet.ami
      architecture       = coalesce(fleet.architecture, "x86_64")
      kubernetes_version = fleet.kubernetes_version == null ? "" : fleet.kubernetes_version
    }
    # Any other is the fleet's to use as it is, or to refuse.
    if can(regex("^(al2023|bottlerocket)[a-z-]*@", fleet.ami))
  }
  image_key_of = { for name, image in local.image_of : name => join(" ", compact(values(image))) }
  # As a reader of the plan knows them, `tier=nodes,team=*`, and different for different tags.
  subnet_key_of = {
    for name, fleet in var.fleets : name => join(",", [
      for key, value in coalesce(fleet.subnet_tags, {}) :
      join("=", [for text in [key, value] : replace(text, "/[\\\\,=]/", "\\$0")])
    ])
  }
  security_group_key_of = {
    for name, fleet in var.fleets : name => join(",", [
      for key, value in coalesce(fleet.security_group_tags, {}) :
      join("=", [for text in [key, value] : replace(text, "/[\\\\,=]/", "\\$0")])
    ])
  }

  image_lookups = { for key, same in { for name, image in local.image_of : local.image_key_of[name] => image... } : key => same[0] }
  subnet_lookups = {
    for key, same in { for name, key in local.subnet_key_of : key => var.fleets[name].subnet_tags... } : key => same[0]
    if key != ""
  }
  security_group_lookups = {
    for key, same in { for name, key in local.security_group_key_of : key => var.fleets[name].security_group_tags... } : key => same[0]
    if key != ""
  }

  looked_up = {
    for name, fleet in var.fleets : name => {
      image_id           = try(local.found_images[local.image_key_of[name]], null)
      subnet_ids         = try(local.found_subnets[local.subnet_key_of[name]], null)
      security_group_ids = try(local.found_security_groups[local.security_group_key_of[name]], null)
    }
  }
}
