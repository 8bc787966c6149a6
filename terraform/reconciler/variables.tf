# Entity 1: the cluster and the ServiceAccount that the reconciler runs with.
variable "cluster_name" {
  description = "Name of the EKS cluster. Only fleets and instances with this value in their tag `cluster` can be changed."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$", var.cluster_name))
    error_message = "cluster_name must be a label value: 1 to 63 letters, digits, '-', '_' or '.', a letter or digit at both ends."
  }
}

variable "regions" {
  description = "Regions of the fleets, as the sector config has them, the home region first. The capacity loop may change nothing elsewhere: another region may have a cluster of the same name. The pipelines may use the state of each. Empty: the provider's."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for region in var.regions : can(regex("^[a-z]{2,4}(-[a-z]+)+-[0-9]{1,2}$", region))])
    error_message = "regions must be names of AWS Regions, such as us-west-2."
  }
}

variable "auto_scaling_groups" {
  description = "Whether the capacity loop may change Auto Scaling groups, managed node groups included, that carry a tag of the cluster, and the pipelines make and change those of the sector config."
  type        = bool
  default     = false
  nullable    = false
}

variable "identity" {
  description = "How the ServiceAccount gets its role: irsa (the cluster's OIDC provider) or pod-identity (the EKS Pod Identity agent)."
  type        = string
  default     = "irsa"
  nullable    = false

  validation {
    condition     = contains(["irsa", "pod-identity"], var.identity)
    error_message = "identity must be irsa or pod-identity."
  }
}

variable "cluster_oidc_provider_arn" {
  description = "ARN of the cluster's IAM OIDC provider. Needed with identity irsa."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = var.cluster_oidc_provider_arn == "" ? var.identity != "irsa" : can(regex("^arn:[^:]+:iam::[0-9]{12}:oidc-provider/.+$", var.cluster_oidc_provider_arn))
    error_message = "cluster_oidc_provider_arn must be the ARN of an IAM OIDC provider; identity irsa needs it."
  }
}

variable "namespace" {
  description = "Namespace of the ServiceAccount, as `reconciler manifest --namespace` has it."
  type        = string
  default     = "fleet-reconciler"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$", var.namespace))
    error_message = "namespace must be the name of a namespace: 1 to 63 lower-case letters, digits or '-'."
  }
}

variable "service_account" {
  description = "Name of the ServiceAccount."
  type        = string
  default     = "fleet-reconciler"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$", var.service_account))
    error_message = "service_account must be the name of a ServiceAccount: a DNS name of at most 253 characters."
  }
}

variable "permissions_boundary_arn" {
  description = "ARN of the permissions boundary of all roles. Empty: none."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = var.permissions_boundary_arn == "" || can(regex("^arn:[^:]+:iam::([0-9]{12}|aws):policy/.+$", var.permissions_boundary_arn))
    error_message = "permissions_boundary_arn must be the ARN of an IAM policy."
  }
}

variable "service_linked_roles" {
  description = "Service-linked roles to make, in an account that has never launched fleets, spot instances or Auto Scaling groups: ec2fleet.amazonaws.com, spot.amazonaws.com, autoscaling.amazonaws.com. An account has each once, so making one that exists fails."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for name in var.service_linked_roles : contains(["autoscaling.amazonaws.com", "ec2fleet.amazonaws.com", "spot.amazonaws.com"], name)])
    error_message = "service_linked_roles must be among autoscaling.amazonaws.com, ec2fleet.amazonaws.com and spot.amazonaws.com."
  }
}

variable "tags" {
  description = "Tags of everything that is made here."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "recording" {
  description = "Bucket, and how keys in it begin, that the capacity loop may record demand in (`recording.path` of the sector config: s3://bucket/prefix). The bucket exists already. Null: none."
  type        = object({ bucket = string, prefix = optional(string, "") })
  default     = null

  validation {
    condition     = var.recording == null ? true : can(regex("^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$", var.recording.bucket))
    error_message = "recording.bucket must be the name of an S3 bucket: 3 to 63 lower-case letters, digits, dots and hyphens."
  }

  validation {
    condition     = var.recording == null ? true : can(regex("^([A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*)?$", var.recording.prefix))
    error_message = "recording.prefix must be words of letters, digits, dots, hyphens and underscores, with slashes between them."
  }
}

# Entity 2: notices of interruptions.
variable "interruption_queue" {
  description = "Whether to make the SQS queue and the EventBridge rules that fill it with notices of interruptions, rebalancing, maintenance and state changes."
  type        = bool
  default     = true
  nullable    = false
}

# Entity 3: where Terraform's state lives.
variable "state_bucket" {
  description = "Name of the S3 bucket to make for Terraform's state. Empty: none is made."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = var.state_bucket == "" || can(regex("^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$", var.state_bucket))
    error_message = "state_bucket must be the name of a bucket: 3 to 63 lower-case letters, digits, '.' or '-'."
  }
}

variable "state_kms_key_arn" {
  description = "ARN of the KMS key that encrypts the state. Empty: Amazon S3's own keys."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = var.state_kms_key_arn == "" || can(regex("^arn:[^:]+:kms:[^:]*:[0-9]{12}:key/.+$", var.state_kms_key_arn))
    error_message = "state_kms_key_arn must be the ARN of a KMS key."
  }
}

variable "state_key" {
  description = "Object key of the cluster's state, as terraform.backend.key of the sector config has it. That of a further region has the region in its name: fleets-us-east-1.tfstate."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = var.state_key == "" ? var.pipelines == null : !startswith(var.state_key, "/")
    error_message = "state_key must be an object key without a leading slash; pipelines need it."
  }
}

# Entity 4: the pipelines of the config repository.
variable "pipelines" {
  description = "Roles for the config repository's pipelines, through the forge's OIDC provider. Subjects are what its tokens say in `sub`, `*` and `?` allowed; apply_subjects should name the protected branch or environment only. Null: none are made."
  type = object({
    oidc_provider_arn = string
    audience          = optional(string, "sts.amazonaws.com")
    plan_subjects     = list(string)
    apply_subjects    = list(string)
    state_bucket      = optional(string, "")
  })
  default = null

  validation {
    condition     = var.pipelines == null ? true : can(regex("^arn:[^:]+:iam::[0-9]{12}:oidc-provider/.+$", var.pipelines.oidc_provider_arn))
    error_message = "pipelines.oidc_provider_arn must be the ARN of an IAM OIDC provider."
  }

  validation {
    condition     = var.pipelines == null ? true : length(var.pipelines.plan_subjects) > 0 && length(var.pipelines.apply_subjects) > 0
    error_message = "pipelines must name at least one subject each for plan and apply."
  }

  validation {
    condition = var.pipelines == null ? true : alltrue([
      for subject in concat(var.pipelines.plan_subjects, var.pipelines.apply_subjects) :
      !can(regex("[*?]", subject)) || can(regex("^[^*?:/]+:[^*?:/]+[:/]", subject))
    ])
    error_message = "pipelines must not take every subject (\"*\", \"repo:*\", \"repo:team*\"): name the owner before a wildcard, as in \"repo:team/fleets:*\", or any repository of the forge could assume the role."
  }

  validation {
    condition     = var.pipelines == null ? true : var.pipelines.state_bucket != "" || var.state_bucket != ""
    error_message = "pipelines need the bucket of the state: state_bucket, or pipelines.state_bucket for one that exists."
  }
}

variable "node_role_arn" {
  description = "ARN of the nodes' IAM role, which creating a fleet hands to EC2. Needed with pipelines when fleets have an instance profile. Empty: none."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = var.node_role_arn == "" || can(regex("^arn:[^:]+:iam::[0-9]{12}:role/.+$", var.node_role_arn))
    error_message = "node_role_arn must be the ARN of an IAM role."
  }
}

variable "image_parameter_arns" {
  description = "ARNs of the Systems Manager parameters that name images of Auto Scaling groups (`ami: resolve:ssm:…`), which the pipeline that applies has to be able to read; `*` allowed. Empty: none."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for each in var.image_parameter_arns : can(regex("^arn:[^:]+:ssm:[^:]*:([0-9]{12}|[*])?:parameter/.+$", each))])
    error_message = "image_parameter_arns must be ARNs of parameters, such as arn:aws:ssm:us-west-2:123456789012:parameter/golden/image."
  }
}
