variable "region" {
  description = "AWS Region."
  type        = string
  default     = "us-west-2"
  nullable    = false
}

variable "cluster_name" {
  description = "Name of the EKS cluster."
  type        = string
  default     = "analytics"
  nullable    = false
}

variable "kubernetes_version" {
  description = "Kubernetes version of the cluster."
  type        = string
  default     = "1.35"
  nullable    = false
}

variable "ami" {
  description = "Id of an EKS-optimised AL2023 image of that version; AWS publishes it as the SSM parameter /aws/service/eks/optimized-ami/<version>/amazon-linux-2023/x86_64/standard/recommended/image_id."
  type        = string
  nullable    = false
}
