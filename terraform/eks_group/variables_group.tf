# What an Auto Scaling group may say and an EC2 Fleet may not, or says otherwise (eks_fleet).
variable "group_name" {
  description = "Name of the Auto Scaling group, 1 to 255 characters: `auto_scaling_group` of the sector config. Changing it replaces the group."
  type        = string
  nullable    = false

  validation {
    condition     = length(var.group_name) >= 1 && length(var.group_name) <= 255 && !can(regex("[\\p{Cc}:]", var.group_name))
    error_message = "group_name must have 1 to 255 characters, without control characters and colons."
  }
}

variable "max_size" {
  description = "Most nodes, 0 or more: the group's MaxSize. Auto Scaling ends instances of its own choice when it is set below the number that there is."
  type        = number
  default     = 1000
  nullable    = false

  validation {
    condition     = var.max_size >= 0 && floor(var.max_size) == var.max_size
    error_message = "max_size must be a whole number, 0 or more."
  }

  validation {
    condition     = var.max_size >= var.initial_node_count
    error_message = "max_size must not be less than initial_node_count."
  }
}

variable "mixed_instances_policy" {
  description = "Whether the group has a mixed instances policy, with instance_types and spot or on-demand in it. Without one it launches what its launch template names (launch_template_instance_type), on demand."
  type        = bool
  default     = true
  nullable    = false

  validation {
    condition     = var.mixed_instances_policy || (!var.spot && try(local.instance_types == tolist([var.launch_template_instance_type]), false))
    error_message = "mixed_instances_policy = false needs spot = false, and launch_template_instance_type as the only one of instance_types."
  }
}

variable "on_demand_base_capacity" {
  description = "Nodes that are on-demand instances before any other is launched, 0 or more."
  type        = number
  default     = 0
  nullable    = false

  validation {
    condition     = var.on_demand_base_capacity >= 0 && floor(var.on_demand_base_capacity) == var.on_demand_base_capacity
    error_message = "on_demand_base_capacity must be a whole number, 0 or more."
  }

  validation {
    condition     = var.on_demand_base_capacity == 0 || (var.spot && var.mixed_instances_policy)
    error_message = "on_demand_base_capacity is for groups with spot instances; with spot = false all are on-demand."
  }
}

variable "on_demand_percentage_above_base_capacity" {
  description = "Percentage of on-demand instances among the nodes above on_demand_base_capacity, 0 to 99. With spot = false all are on-demand."
  type        = number
  default     = 0
  nullable    = false

  validation {
    condition = (
      var.on_demand_percentage_above_base_capacity >= 0 && var.on_demand_percentage_above_base_capacity <= 99
      && floor(var.on_demand_percentage_above_base_capacity) == var.on_demand_percentage_above_base_capacity
    )
    error_message = "on_demand_percentage_above_base_capacity must be a whole number from 0 to 99; for 100 set spot = false."
  }

  validation {
    condition     = var.on_demand_percentage_above_base_capacity == 0 || (var.spot && var.mixed_instances_policy)
    error_message = "on_demand_percentage_above_base_capacity is for groups with spot instances; with spot = false all are on-demand."
  }
}

variable "spot_allocation_strategy" {
  description = "How EC2 chooses among spot pools: price-capacity-optimized, capacity-optimized or lowestPrice."
  type        = string
  default     = "price-capacity-optimized"
  nullable    = false

  validation {
    condition     = contains(["price-capacity-optimized", "capacity-optimized", "lowestPrice"], var.spot_allocation_strategy)
    error_message = "spot_allocation_strategy must be price-capacity-optimized, capacity-optimized or lowestPrice."
  }
}

variable "node_resources" {
  description = "Extended resources of a node, such as nvidia.com/gpu to 1, for the group's node-template tags."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "group_tags" {
  description = "All tags of the group itself, instead of tags, the module's own and those that describe a node. Null: those."
  type = list(object({
    key                 = string
    value               = string
    propagate_at_launch = optional(bool, false)
  }))
  default = null

  validation {
    condition     = var.group_tags == null ? true : length(distinct(var.group_tags[*].key)) == length(var.group_tags)
    error_message = "group_tags must have each key once."
  }
}
