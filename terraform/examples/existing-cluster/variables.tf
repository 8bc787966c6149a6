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

variable "auto_scaling_groups" {
  description = "Whether the cluster's Auto Scaling groups, managed node groups included, are scaled too: by the capacity loop, and made and changed by the pipelines."
  type        = bool
  default     = false
  nullable    = false
}

variable "cluster_oidc_provider_arn" {
  description = "ARN of the cluster's IAM OIDC provider."
  type        = string
  nullable    = false
}

variable "node_role_arn" {
  description = "ARN of the nodes' IAM role."
  type        = string
  nullable    = false
}

variable "state_bucket" {
  description = "Name of the bucket to make for Terraform's state."
  type        = string
  nullable    = false
}

variable "repository" {
  description = "The config repository on GitHub, owner/name."
  type        = string
  nullable    = false
}

variable "github_oidc_provider_arn" {
  description = "ARN of the account's IAM OIDC provider for GitHub (token.actions.githubusercontent.com). Empty: it has none, and one is made."
  type        = string
  default     = ""
  nullable    = false
}
