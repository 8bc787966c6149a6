# Entity 4: what a fleet and its launch template may say otherwise than this module does by itself.
# Without these the module decides. `reconciler import` states them for fleets that others made, so that
# taking a fleet over changes nothing of it; each can be dropped later, one at a time.
variable "launch_template_name" {
  description = "Name of the launch template. Empty: <cluster_name>-<fleet name>, for a group with -group behind it. Changing it replaces the launch template, not the fleet."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = can(regex("^([a-zA-Z0-9().\\-/_]{3,125})?$", var.launch_template_name))
    error_message = "launch_template_name must have 3 to 125 letters, digits or ( ) . - / _."
  }
}

variable "launch_template_version" {
  description = "Version that the fleet launches from: $Latest, $Default or a number. With a number a change of the template reaches new nodes only when the number is changed too, and that modifies the fleet."
  type        = string
  default     = "$Latest"
  nullable    = false

  validation {
    condition     = can(regex("^(\\$Latest|\\$Default|[1-9][0-9]{0,9})$", var.launch_template_version))
    error_message = "launch_template_version must be $Latest, $Default or a number from 1."
  }
}

variable "launch_template_description" {
  description = "Description of the launch template's versions. Null: the module's. Empty: none."
  type        = string
  default     = null

  validation {
    condition     = var.launch_template_description == null ? true : length(var.launch_template_description) <= 255
    error_message = "launch_template_description must have at most 255 characters."
  }
}

variable "launch_template_tags" {
  description = "All tags of the launch template, instead of tags and the module's own. Null: tags and the module's own."
  type        = map(string)
  default     = null
}

variable "tag_specifications" {
  description = "What a launch gives tags, in order: instance, volume, network-interface or spot-instances-request, and all its tags. Instances need the tag cluster: the shipped IAM policy lets the capacity loop end only those that have it. Null: instances and volumes have tags and the module's own."
  type = list(object({
    resource_type = string
    tags          = optional(map(string), {})
  }))
  default = null

  validation {
    condition = var.tag_specifications == null ? true : alltrue([
      for each in var.tag_specifications :
      contains(["instance", "volume", "network-interface", "spot-instances-request", "elastic-gpu"], each.resource_type)
    ])
    error_message = "tag_specifications must be for instance, volume, network-interface or spot-instances-request."
  }
}

variable "launch_template_instance_type" {
  description = "Instance type that the launch template names. Empty: none; the fleet's overrides name them."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = can(regex("^([a-z0-9-]+\\.[a-z0-9-]+)?$", var.launch_template_instance_type))
    error_message = "launch_template_instance_type must be the name of an EC2 instance type, such as m5.xlarge."
  }
}

variable "instance_profile_arn" {
  description = "ARN of the IAM instance profile of the nodes, where it is to be given so. Empty: instance_profile_name is used."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = can(regex("^(arn:[^:]+:iam::[0-9]{12}:instance-profile/.+)?$", var.instance_profile_arn))
    error_message = "instance_profile_arn must be the ARN of an IAM instance profile."
  }

  validation {
    condition     = var.instance_profile_arn == "" || var.instance_profile_name == ""
    error_message = "instance_profile_arn and instance_profile_name must not both be given."
  }
}

variable "security_group_ids" {
  description = "Security groups of the nodes, where they are several or none, instead of security_group_id. Null: security_group_id."
  type        = list(string)
  default     = null

  validation {
    condition     = var.security_group_ids == null ? true : alltrue([for id in var.security_group_ids : can(regex("^sg-[0-9a-z]+$", id))])
    error_message = "security_group_ids must be ids of security groups (sg-…)."
  }
}

variable "network_interfaces" {
  description = "Network interfaces of the nodes, for public addresses or several interfaces. They name the security groups; security_group_id is then not used."
  type = list(object({
    device_index                = optional(number)
    network_card_index          = optional(number)
    interface_type              = optional(string)
    description                 = optional(string)
    subnet_id                   = optional(string)
    security_groups             = optional(list(string))
    associate_public_ip_address = optional(bool)
    delete_on_termination       = optional(bool)
    ipv4_prefix_count           = optional(number)
    ipv6_prefix_count           = optional(number)
    ipv4_address_count          = optional(number)
    ipv6_address_count          = optional(number)
  }))
  default  = []
  nullable = false

  validation {
    condition     = alltrue([for id in flatten([for each in var.network_interfaces : coalesce(each.security_groups, [])]) : can(regex("^sg-[0-9a-z]+$", id))])
    error_message = "network_interfaces must have ids of security groups (sg-…)."
  }

  validation {
    condition     = alltrue([for each in var.network_interfaces : each.subnet_id == null ? true : can(regex("^subnet-[0-9a-z]+$", each.subnet_id))])
    error_message = "network_interfaces must have subnet ids (subnet-…), or none."
  }

  validation {
    condition = alltrue([
      for number in flatten([
        for each in var.network_interfaces : [
          each.device_index, each.network_card_index,
          each.ipv4_prefix_count, each.ipv6_prefix_count, each.ipv4_address_count, each.ipv6_address_count,
        ]
      ]) :
      number == null ? true : number >= 0 && floor(number) == number
    ])
    error_message = "network_interfaces must have whole numbers from 0 as indexes and counts, or none."
  }
}

variable "volumes" {
  description = "The nodes' volumes, instead of the one that the ebs_ variables describe; what a volume leaves out is the image's. Sizes in GiB, throughput in MiB/s. Empty: the image's own."
  type = list(object({
    device_name           = string
    size                  = optional(number)
    type                  = optional(string)
    iops                  = optional(number)
    throughput            = optional(number)
    encrypted             = optional(bool)
    kms_key_id            = optional(string)
    snapshot_id           = optional(string)
    delete_on_termination = optional(bool)
  }))
  default = null

  validation {
    condition     = var.volumes == null ? true : length(distinct(var.volumes[*].device_name)) == length(var.volumes)
    error_message = "volumes must have each device_name once."
  }

  validation {
    condition = var.volumes == null ? true : alltrue([
      for each in var.volumes :
      each.type == null ? true : contains(["gp3", "gp2", "io1", "io2", "st1", "sc1", "standard"], each.type)
    ])
    error_message = "volumes must have a type of gp3, gp2, io1, io2, st1, sc1 or standard, or none."
  }

  validation {
    condition = var.volumes == null ? true : alltrue([
      for each in var.volumes :
      each.size == null ? true : each.size >= 1 && each.size <= 65536 && floor(each.size) == each.size
    ])
    error_message = "volumes must have a size that is a whole number of GiB from 1 to 65536, or none."
  }

  validation {
    condition = var.volumes == null ? true : alltrue([
      for number in flatten([for each in var.volumes : [each.iops, each.throughput]]) :
      number == null ? true : number >= 0 && floor(number) == number
    ])
    error_message = "volumes must have whole numbers from 0 as iops and throughput, or none."
  }
}

variable "metadata_options" {
  description = "Instance metadata options, instead of IMDSv2 required and metadata_hop_limit. What it leaves out is the image's or the account's default. http_tokens = optional allows IMDSv1, by which a pod can take the node's role."
  type = object({
    http_endpoint               = optional(string)
    http_tokens                 = optional(string)
    http_put_response_hop_limit = optional(number)
    http_protocol_ipv6          = optional(string)
    instance_metadata_tags      = optional(string)
  })
  default = null

  validation {
    condition = var.metadata_options == null ? true : (
      (var.metadata_options.http_tokens == null ? true : contains(["required", "optional"], var.metadata_options.http_tokens))
      && alltrue([
        for each in [var.metadata_options.http_endpoint, var.metadata_options.http_protocol_ipv6, var.metadata_options.instance_metadata_tags] :
        each == null ? true : contains(["enabled", "disabled"], each)
      ])
    )
    error_message = "metadata_options must have http_tokens required or optional, and enabled or disabled for the others."
  }

  validation {
    condition = (
      try(var.metadata_options.http_put_response_hop_limit, null) == null ? true
      : var.metadata_options.http_put_response_hop_limit >= 1 && var.metadata_options.http_put_response_hop_limit <= 64
      && floor(var.metadata_options.http_put_response_hop_limit) == var.metadata_options.http_put_response_hop_limit
    )
    error_message = "metadata_options must have an http_put_response_hop_limit that is a whole number from 1 to 64, or none."
  }
}

variable "monitoring" {
  description = "Whether instances have detailed monitoring (one-minute metrics, billed). Null: not stated, which EC2 takes for no."
  type        = bool
  default     = null
}

variable "ebs_optimized" {
  description = "Whether instances are EBS-optimized. Null: the instance type's default."
  type        = bool
  default     = null
}

variable "cpu_credits" {
  description = "CPU credits of burstable instance types: standard or unlimited. Empty: the type's default."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = contains(["", "standard", "unlimited"], var.cpu_credits)
    error_message = "cpu_credits must be standard or unlimited."
  }
}

variable "instance_initiated_shutdown_behavior" {
  description = "What EC2 does when an instance shuts itself down: stop or terminate. Empty: not stated, which EC2 takes for stop."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = contains(["", "stop", "terminate"], var.instance_initiated_shutdown_behavior)
    error_message = "instance_initiated_shutdown_behavior must be stop or terminate."
  }
}

variable "placement" {
  description = "Where instances are placed: placement group, tenancy, host or zone. Null: EC2's choice."
  type = object({
    affinity                = optional(string)
    availability_zone       = optional(string)
    group_name              = optional(string)
    host_id                 = optional(string)
    host_resource_group_arn = optional(string)
    partition_number        = optional(number)
    tenancy                 = optional(string)
  })
  default = null

  validation {
    condition     = try(var.placement.tenancy, null) == null ? true : contains(["default", "dedicated", "host"], var.placement.tenancy)
    error_message = "placement must have the tenancy default, dedicated or host."
  }

  validation {
    condition     = try(var.placement.partition_number, null) == null ? true : var.placement.partition_number >= 1 && floor(var.placement.partition_number) == var.placement.partition_number
    error_message = "placement must have a partition_number that is a whole number from 1, or none."
  }
}

variable "user_data" {
  description = "User data in plain text, given to instances as it is: ami_type, labels, taints and the kubelet's settings then do not reach them. It stands in the config, the state and EC2 in clear: no secrets. Null: what ami_type says. Empty: none."
  type        = string
  default     = null
}

variable "bootstrap_arguments" {
  description = "More arguments of /etc/eks/bootstrap.sh, as shell words on one line; for ami_type AL2."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = !can(regex("[\\r\\n]", var.bootstrap_arguments))
    error_message = "bootstrap_arguments must be on one line."
  }

  validation {
    condition     = var.bootstrap_arguments == "" || var.ami_type == "AL2"
    error_message = "bootstrap_arguments is for ami_type AL2 only."
  }
}
