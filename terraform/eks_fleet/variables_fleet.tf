# What an EC2 Fleet may say and an Auto Scaling group may not, or says otherwise (eks_group).
variable "spot_allocation_strategy" {
  description = "How EC2 chooses among spot pools: price-capacity-optimized, capacity-optimized, diversified or lowestPrice. For new fleets only."
  type        = string
  default     = "price-capacity-optimized"
  nullable    = false

  validation {
    condition     = contains(["price-capacity-optimized", "capacity-optimized", "diversified", "lowestPrice"], var.spot_allocation_strategy)
    error_message = "spot_allocation_strategy must be price-capacity-optimized, capacity-optimized, diversified or lowestPrice."
  }
}

variable "max_prices" {
  description = "Most to pay for one spot node of an instance type, in USD per hour: type to price. Types that it lacks have max_price."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for price in values(var.max_prices) : can(regex("^[0-9]+(\\.[0-9]+)?$", price)) && !can(regex("^[0.]+$", price))])
    error_message = "max_prices must be decimal numbers of USD per hour above 0, such as \"0.25\"."
  }

  validation {
    condition     = length(var.max_prices) == 0 || var.spot
    error_message = "max_prices is for spot fleets; with spot = false it must be left out."
  }
}

variable "overrides" {
  description = "The fleet's overrides, in their order, instead of one for each instance type and subnet. weighted_capacity must be 1 where it is given: targets count nodes. Null: made from instance_types, private_subnet_ids and max_prices. Empty: none, the launch template names the instance type."
  type = list(object({
    instance_type     = optional(string)
    subnet_id         = optional(string)
    availability_zone = optional(string)
    max_price         = optional(string)
    priority          = optional(number)
    weighted_capacity = optional(number)
  }))
  default = null

  validation {
    condition     = var.overrides == null ? true : alltrue([for each in var.overrides : each.weighted_capacity == null ? true : each.weighted_capacity == 1])
    error_message = "overrides must have a weighted_capacity of 1 or none: the target counts nodes, not units."
  }

  validation {
    condition = var.overrides == null ? true : (
      length(var.overrides) == 0 ? var.launch_template_instance_type != "" : (
        toset(local.instance_types) == toset([for each in var.overrides : coalesce(each.instance_type, var.launch_template_instance_type, "none")])
      )
    )
    error_message = "overrides must name the fleet's instance types (${join(", ", local.instance_types)}) and no other; without any, launch_template_instance_type must name it."
  }

  validation {
    condition     = var.overrides == null ? true : alltrue([for each in var.overrides : each.subnet_id == null ? true : can(regex("^subnet-[0-9a-z]+$", each.subnet_id))])
    error_message = "overrides must have subnet ids (subnet-…)."
  }

  validation {
    condition     = var.overrides == null ? true : alltrue([for each in var.overrides : each.priority == null ? true : each.priority >= 0 && floor(each.priority) == each.priority])
    error_message = "overrides must have a priority that is a whole number from 0, or none."
  }
}

variable "fleet_tags" {
  description = "All tags of the fleet itself, instead of tags and the module's own. The capacity loop finds it by cluster, sector and size. Null: tags and the module's own."
  type        = map(string)
  default     = null

  validation {
    condition = var.fleet_tags == null ? true : alltrue([
      for key, value in { cluster = var.cluster_name, sector = var.sector_label, size = var.node_pool_size } :
      try(var.fleet_tags[key], "") == value
    ])
    error_message = "fleet_tags must have cluster, sector and size as the fleet has them (${var.cluster_name}, ${var.sector_label}, ${var.node_pool_size}): the capacity loop finds it by them."
  }
}

variable "launch_template_by_name" {
  description = "Whether the fleet refers to its launch template by name instead of id."
  type        = bool
  default     = false
  nullable    = false
}
