# Entity 1: the group, how it is named, how large it may be and where it runs.
variable "cluster_name" {
  description = "Name of the EKS cluster."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$", var.cluster_name))
    error_message = "cluster_name must be a label value: 1 to 63 letters, digits, '-', '_' or '.', a letter or digit at both ends."
  }
}

variable "sector_label" {
  description = "Sector the group belongs to. Value of the nodes' label `sector`."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$", var.sector_label))
    error_message = "sector_label must be a label value: 1 to 63 letters, digits, '-', '_' or '.', a letter or digit at both ends."
  }
}

variable "node_pool_size" {
  description = "Size of the nodes, a name of yours. Value of the nodes' label `size`."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$", var.node_pool_size))
    error_message = "node_pool_size must be a label value: 1 to 63 letters, digits, '-', '_' or '.', a letter or digit at both ends."
  }
}

variable "node_pool_kind" {
  description = "Kind of the sector, as the sector config has it. Value of the nodes' label `kind`. Empty: they have none."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = var.node_pool_kind == "" || can(regex("^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$", var.node_pool_kind))
    error_message = "node_pool_kind must be a label value: 1 to 63 letters, digits, '-', '_' or '.', a letter or digit at both ends."
  }
}

variable "spot" {
  description = "Whether the nodes are spot instances. Changing it replaces the group."
  type        = bool
  default     = true
  nullable    = false
}

variable "min_size" {
  description = "Nodes that are always kept, 0 or more."
  type        = number
  default     = 0
  nullable    = false

  validation {
    condition     = var.min_size >= 0 && floor(var.min_size) == var.min_size
    error_message = "min_size must be a whole number, 0 or more."
  }
}

variable "max_size" {
  description = "Most nodes, 1 or more and not less than min_size."
  type        = number
  nullable    = false

  validation {
    condition     = var.max_size >= max(1, var.min_size) && floor(var.max_size) == var.max_size
    error_message = "max_size must be a whole number, 1 or more, and not less than min_size."
  }
}

variable "max_unavailable_percentage" {
  description = "Share of the nodes that EKS may replace at a time when the group gets a new version, 1 to 100 percent."
  type        = number
  default     = 10
  nullable    = false

  validation {
    condition     = var.max_unavailable_percentage >= 1 && var.max_unavailable_percentage <= 100 && floor(var.max_unavailable_percentage) == var.max_unavailable_percentage
    error_message = "max_unavailable_percentage must be a whole number from 1 to 100."
  }
}

variable "subnet_ids" {
  description = "Subnets to launch into. At least one."
  type        = list(string)
  nullable    = false

  validation {
    condition     = length(var.subnet_ids) > 0 && alltrue([for id in var.subnet_ids : can(regex("^subnet-[0-9a-z]+$", id))])
    error_message = "subnet_ids must name at least one subnet (subnet-…)."
  }
}

# Entity 2: the instance.
variable "instance_types" {
  description = "Instance types the group may launch; give types with equal CPU and memory."
  type        = list(string)
  nullable    = false

  validation {
    condition     = length(var.instance_types) > 0 && alltrue([for name in var.instance_types : can(regex("^[a-z0-9-]+\\.[a-z0-9-]+$", name))])
    error_message = "instance_types must name at least one EC2 instance type, such as m5.xlarge."
  }
}

variable "node_role_arn" {
  description = "ARN of the nodes' IAM role."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^arn:[^:]+:iam::[0-9]{12}:role/.+$", var.node_role_arn))
    error_message = "node_role_arn must be the ARN of an IAM role."
  }
}

variable "tags" {
  description = "Tags of your own for the group."
  type        = map(string)
  default     = {}
  nullable    = false
}

# Entity 3: the Kubernetes node.
variable "node_labels" {
  description = "Labels of your own for the nodes."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for key in keys(var.node_labels) : !contains(["sector", "fleet", "size", "pool_size", "kind", "lifecycle"], key)])
    error_message = "node_labels must not use sector, fleet, size, pool_size, kind and lifecycle: the module sets them."
  }
}

variable "node_taints" {
  description = "Taints the nodes register with, as Kubernetes objects: key, value, effect (NoSchedule, PreferNoSchedule or NoExecute)."
  type = list(object({
    key    = string
    value  = optional(string, "")
    effect = string
  }))
  default  = []
  nullable = false

  validation {
    condition     = alltrue([for taint in var.node_taints : contains(["NoSchedule", "PreferNoSchedule", "NoExecute"], taint.effect)])
    error_message = "node_taints must have the effect NoSchedule, PreferNoSchedule or NoExecute."
  }
}
