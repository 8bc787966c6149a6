variable "cluster_name" {
  description = "Name of the EKS cluster."
  type        = string
  nullable    = false
}

variable "kubernetes_version" {
  description = "Kubernetes version of the cluster."
  type        = string
  nullable    = false
}

variable "subnet_ids" {
  description = "Subnets of the control plane's network interfaces."
  type        = list(string)
  nullable    = false
}
