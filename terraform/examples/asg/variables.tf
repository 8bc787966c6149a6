variable "region" {
  description = "AWS Region."
  type        = string
  default     = "us-west-2"
  nullable    = false
}

variable "cluster_name" {
  description = "Name of the EKS cluster that exists."
  type        = string
  nullable    = false
}

variable "node_role_arn" {
  description = "ARN of the nodes' IAM role."
  type        = string
  nullable    = false
}

variable "subnet_ids" {
  description = "Private subnets of the nodes."
  type        = list(string)
  nullable    = false
}

variable "node_groups" {
  description = "Managed node groups by name, each with the variables of node_group."
  type = map(object({
    sector_label   = string
    node_pool_size = string
    node_pool_kind = optional(string, "memory")
    instance_types = list(string)
    max_size       = number
    spot           = optional(bool, true)
    node_labels    = optional(map(string), {})
    node_taints    = optional(list(object({ key = string, value = optional(string, ""), effect = string })), [])
  }))
  nullable = false
  default = {
    web-small = {
      sector_label   = "web"
      node_pool_size = "small"
      instance_types = ["m6i.xlarge", "m5.xlarge"]
      max_size       = 50
    }
    batch-large = {
      sector_label   = "batch"
      node_pool_size = "large"
      instance_types = ["r6i.4xlarge", "r5.4xlarge"]
      max_size       = 20
      node_taints    = [{ key = "dedicated", value = "batch", effect = "NoSchedule" }]
    }
  }
}
