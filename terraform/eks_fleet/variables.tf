# Entity 1: the fleet, how it is named, how large it starts and where it runs.
variable "cluster_name" {
  description = "Name of the EKS cluster. Value of tag `cluster`, part of kubernetes.io/cluster/<name>."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$", var.cluster_name))
    error_message = "cluster_name must be a label value: 1 to 63 letters, digits, '-', '_' or '.', a letter or digit at both ends."
  }
}

variable "sector_label" {
  description = "Sector the fleet belongs to. Value of label and tag `sector`."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$", var.sector_label))
    error_message = "sector_label must be a label value: 1 to 63 letters, digits, '-', '_' or '.', a letter or digit at both ends."
  }

  validation {
    condition = length(join("-", compact([
      var.sector_label, var.node_pool_size, var.zone, var.lifecycle_in_name ? (var.spot ? "spot" : "on-demand") : "",
    ]))) <= 63
    error_message = "sector_label, node_pool_size, zone and, with lifecycle_in_name, spot or on-demand, joined by '-', name the fleet; a fleet's name has at most 63 characters."
  }
}

variable "node_pool_size" {
  description = "Size of the nodes: xsmall, small, medium, large or xlarge, or an own name together with instance_types."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$", var.node_pool_size))
    error_message = "node_pool_size must be a label value: 1 to 63 letters, digits, '-', '_' or '.', a letter or digit at both ends."
  }

  validation {
    condition     = length(var.instance_types) > 0 || contains(["xsmall", "small", "medium", "large", "xlarge"], var.node_pool_size)
    error_message = "node_pool_size must be xsmall, small, medium, large or xlarge; an own size needs instance_types."
  }
}

variable "node_pool_kind" {
  description = "Kind of the nodes: memory or cpu, or an own kind together with instance_types. One kind per sector."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$", var.node_pool_kind))
    error_message = "node_pool_kind must be a label value: 1 to 63 letters, digits, '-', '_' or '.', a letter or digit at both ends."
  }

  validation {
    condition     = length(var.instance_types) > 0 || contains(["memory", "cpu"], var.node_pool_kind)
    error_message = "node_pool_kind must be memory or cpu; an own kind needs instance_types."
  }
}

variable "zone" {
  description = "Availability zone of a fleet of one zone, which must have a subnet. Empty: every zone that has one."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = var.zone == "" || length(var.subnet_tags) > 0 || contains(keys(var.private_subnet_ids), var.zone)
    error_message = "zone must be one of the zones that private_subnet_ids has a subnet for."
  }
}

variable "lifecycle_in_name" {
  description = "Whether spot or on-demand is part of the fleet's name, so that a sector can have a size as both."
  type        = bool
  default     = false
  nullable    = false
}

variable "spot" {
  description = "Whether the nodes are spot instances. Changing it replaces the fleet."
  type        = bool
  default     = true
  nullable    = false
}

variable "initial_node_count" {
  description = "Nodes the fleet is created with, 0 to 10000. Afterwards its capacity belongs to the capacity loop, and this is ignored."
  type        = number
  default     = 0
  nullable    = false

  validation {
    condition     = var.initial_node_count >= 0 && var.initial_node_count <= 10000 && floor(var.initial_node_count) == var.initial_node_count
    error_message = "initial_node_count must be a whole number from 0 to 10000 (EC2's limit for one fleet)."
  }
}

variable "instance_types" {
  description = "Instance types the fleet may launch. Empty: those of the built-in size."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for name in var.instance_types : can(regex("^[a-z0-9-]+\\.[a-z0-9-]+$", name))])
    error_message = "instance_types must be names of EC2 instance types, such as m5.xlarge."
  }

  validation {
    condition     = length(distinct(var.instance_types)) == length(var.instance_types)
    error_message = "instance_types must name each type once."
  }
}

variable "private_subnet_ids" {
  description = "Subnets to launch into: availability zone to subnet id. At least one, unless subnet_tags or overrides are given."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = length(var.private_subnet_ids) > 0 || length(var.subnet_tags) > 0 || local.overrides_given
    error_message = "private_subnet_ids must have at least one subnet, unless subnet_tags or overrides are given."
  }

  validation {
    condition     = length(var.private_subnet_ids) == 0 || length(var.subnet_tags) == 0
    error_message = "private_subnet_ids and subnet_tags exclude each other."
  }

  validation {
    condition     = alltrue([for id in values(var.private_subnet_ids) : can(regex("^subnet-[0-9a-z]+$", id))])
    error_message = "private_subnet_ids must map availability zones to subnet ids (subnet-…)."
  }
}

variable "subnet_tags" {
  description = "Tags of the subnets to launch into, instead of private_subnet_ids: all of them on one subnet of each availability zone. The value * stands for any. Looked up when planning."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = length(var.subnet_tags) == 0 || !local.overrides_given
    error_message = "subnet_tags and overrides exclude each other: overrides name their subnets."
  }
}

variable "max_price" {
  description = "Most to pay for one spot node, in USD per hour. Null: the on-demand price."
  type        = string
  default     = null

  validation {
    condition     = var.max_price == null ? true : can(regex("^[0-9]+(\\.[0-9]+)?$", var.max_price)) && !can(regex("^[0.]+$", var.max_price))
    error_message = "max_price must be a decimal number of USD per hour above 0, such as \"0.25\"."
  }

  validation {
    condition     = var.max_price == null || var.spot
    error_message = "max_price is for spot fleets; with spot = false it must be left out."
  }
}

variable "tags" {
  description = "Tags of your own for the fleet, its launch template, instances and volumes. Keys up to 128, values up to 256 characters, 42 at most."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition = length([
      for key in keys(var.tags) : key
      if contains(["Name", "Spot", "cluster", "fleet", "kind", "managed", "name", "sector", "size", "kubernetes.io/cluster/${var.cluster_name}"], key)
    ]) == 0
    error_message = "tags must not use reserved keys (${join(", ", [for key in keys(var.tags) : key if contains(["Name", "Spot", "cluster", "fleet", "kind", "managed", "name", "sector", "size", "kubernetes.io/cluster/${var.cluster_name}"], key)])}): Name, Spot, cluster, fleet, kind, managed, name, sector, size and kubernetes.io/cluster/<cluster_name> are set by the module."
  }

  validation {
    condition     = alltrue([for key in keys(var.tags) : !startswith(lower(key), "aws:")])
    error_message = "tags must not use keys that begin with aws: (${join(", ", [for key in keys(var.tags) : key if startswith(lower(key), "aws:")])}); AWS reserves them."
  }

  validation {
    condition     = length(var.tags) <= 42
    error_message = "tags may have at most 42 entries, not ${length(var.tags)}: EC2 takes 50 and the module sets 8."
  }

  validation {
    condition     = alltrue([for key in keys(var.tags) : length(split("", key)) >= 1 && length(split("", key)) <= 128])
    error_message = "tags must have keys of 1 to 128 characters (${join(", ", [for key in keys(var.tags) : substr(key, 0, 20) if length(split("", key)) > 128])})."
  }

  validation {
    condition     = alltrue([for value in values(var.tags) : value == null ? false : length(split("", value)) <= 256])
    error_message = "tags must have values of at most 256 characters (${join(", ", [for key, value in var.tags : key if value == null ? true : length(split("", value)) > 256])})."
  }

  validation {
    condition     = alltrue([for text in concat(keys(var.tags), values(var.tags)) : !can(regex("\\p{Cc}", text))])
    error_message = "tags must not have control characters in keys or values."
  }
}

# Entity 2: the instance.
variable "ami" {
  description = "Machine image of the family that ami_type names: its id (ami-…); an alias such as al2023@latest, al2023@v20260110 or bottlerocket@v1.26.1, looked up when planning; or, for Auto Scaling groups, resolve:ssm:<parameter>, looked up at each launch."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^(ami-[0-9a-z]+|resolve:ssm:[A-Za-z0-9/_.:-]+|(al2023(-nvidia|-neuron)?|bottlerocket(-nvidia)?)@(latest|v[0-9]+(\\.[0-9]+)*))$", var.ami))
    error_message = "ami must be the id of a machine image (ami-…), an alias (al2023, al2023-nvidia, al2023-neuron, bottlerocket or bottlerocket-nvidia, then @latest or @v<version>) or resolve:ssm:<parameter>."
  }

  validation {
    condition     = local.image_parameters_taken || !startswith(var.ami, "resolve:")
    error_message = "ami must not be resolve:ssm:<parameter> for an EC2 Fleet: EC2 launches no node of a fleet of type maintain from it."
  }
}

variable "architecture" {
  description = "Architecture of the image that an alias in ami names: x86_64 or arm64."
  type        = string
  default     = "x86_64"
  nullable    = false

  validation {
    condition     = contains(["x86_64", "arm64"], var.architecture)
    error_message = "architecture must be x86_64 or arm64."
  }
}

variable "kubernetes_version" {
  description = "Kubernetes version of the image that an alias in ami names, such as 1.35. Empty: the cluster's, which EKS is asked for when planning."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = can(regex("^(1\\.[0-9]{1,3})?$", var.kubernetes_version))
    error_message = "kubernetes_version must be a version such as 1.35."
  }
}

variable "ami_type" {
  description = "How the image is configured at boot: AL2023 (nodeadm), BOTTLEROCKET (TOML settings) or AL2 (/etc/eks/bootstrap.sh, for images that were kept; AWS makes no new ones)."
  type        = string
  default     = "AL2023"
  nullable    = false

  validation {
    condition     = contains(["AL2023", "BOTTLEROCKET", "AL2"], var.ami_type)
    error_message = "ami_type must be AL2023, BOTTLEROCKET or AL2."
  }

  validation {
    condition     = !startswith(var.ami, "bottlerocket") || var.ami_type == "BOTTLEROCKET"
    error_message = "ami_type must be BOTTLEROCKET for the alias in ami."
  }

  validation {
    condition     = !startswith(var.ami, "al2023") || var.ami_type == "AL2023"
    error_message = "ami_type must be AL2023 for the alias in ami."
  }
}

variable "security_group_id" {
  description = "Security group of the nodes (sg-…). Needed unless security_group_tags, security_group_ids or network_interfaces are given."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = can(regex("^(sg-[0-9a-z]+)?$", var.security_group_id))
    error_message = "security_group_id must be the id of a security group (sg-…)."
  }

  validation {
    condition = (
      var.security_group_id != "" || length(var.security_group_tags) > 0
      || var.security_group_ids != null || length(var.network_interfaces) > 0
    )
    error_message = "security_group_id must be given, or security_group_tags, security_group_ids or network_interfaces."
  }

  validation {
    condition = length(var.security_group_tags) == 0 || (
      var.security_group_id == "" && var.security_group_ids == null && length(var.network_interfaces) == 0
    )
    error_message = "security_group_id, security_group_ids and network_interfaces exclude security_group_tags."
  }
}

variable "security_group_tags" {
  description = "Tags of the security groups of the nodes, instead of security_group_id: every group that has all of them. The value * stands for any. Looked up when planning."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "looked_up" {
  description = "What a caller with many fleets looked up for all of them: the image that ami names as an alias, the subnets that have subnet_tags by availability zone, the security groups that have security_group_tags. Null: the module looks up what it needs."
  type = object({
    image_id           = optional(string)
    subnet_ids         = optional(map(list(string)))
    security_group_ids = optional(list(string))
  })
  default = null

  validation {
    condition = var.looked_up == null ? true : (
      (!strcontains(var.ami, "@") || var.looked_up.image_id != null)
      && (length(var.subnet_tags) == 0 || var.looked_up.subnet_ids != null)
      && (length(var.security_group_tags) == 0 || var.looked_up.security_group_ids != null)
    )
    error_message = "looked_up must have the image_id of an alias in ami, the subnet_ids of subnet_tags and the security_group_ids of security_group_tags."
  }
}

variable "ssh_key_name" {
  description = "Name of the EC2 key pair for SSH. Empty: none."
  type        = string
  default     = ""
  nullable    = false
}

variable "instance_profile_name" {
  description = "Name of the IAM instance profile of the nodes. Empty: none (nodes then cannot join an EKS cluster)."
  type        = string
  default     = ""
  nullable    = false
}

variable "metadata_hop_limit" {
  description = "Network hops an instance metadata answer may travel, 1 to 64. 1 keeps it from pods without host network. IMDSv2 is always required."
  type        = number
  default     = 1
  nullable    = false

  validation {
    condition     = var.metadata_hop_limit >= 1 && var.metadata_hop_limit <= 64 && floor(var.metadata_hop_limit) == var.metadata_hop_limit
    error_message = "metadata_hop_limit must be a whole number from 1 to 64."
  }
}

variable "ebs_size" {
  description = "Size of the node's volume in GiB, 1 to 65536."
  type        = number
  default     = 50
  nullable    = false

  validation {
    condition     = var.ebs_size >= 1 && var.ebs_size <= 65536 && floor(var.ebs_size) == var.ebs_size
    error_message = "ebs_size must be a whole number of GiB from 1 to 65536."
  }
}

variable "ebs_type" {
  description = "Type of the node's volume: gp3, gp2, io1 or io2."
  type        = string
  default     = "gp3"
  nullable    = false

  validation {
    condition     = contains(["gp3", "gp2", "io1", "io2"], var.ebs_type)
    error_message = "ebs_type must be gp3, gp2, io1 or io2."
  }
}

variable "ebs_iops" {
  description = "Provisioned operations per second of the volume, for gp3, io1 and io2. Null: the type's baseline."
  type        = number
  default     = null

  validation {
    condition     = var.ebs_iops == null ? !startswith(var.ebs_type, "io") : var.ebs_iops >= 100 && floor(var.ebs_iops) == var.ebs_iops && var.ebs_type != "gp2"
    error_message = "ebs_iops must be a whole number, at least 100; io1 and io2 need it, gp2 must leave it out."
  }

  validation {
    condition     = var.ebs_iops == null || var.ebs_type != "gp3" ? true : var.ebs_iops >= 3000
    error_message = "ebs_iops of a gp3 volume must be at least 3000, its baseline; leave it out for that."
  }
}

variable "ebs_throughput" {
  description = "Provisioned throughput of a gp3 volume in MiB/s, 125 to 1000. Null: 125."
  type        = number
  default     = null

  validation {
    condition     = var.ebs_throughput == null ? true : var.ebs_throughput >= 125 && var.ebs_throughput <= 1000 && floor(var.ebs_throughput) == var.ebs_throughput && var.ebs_type == "gp3"
    error_message = "ebs_throughput must be a whole number from 125 to 1000 MiB/s and is for gp3 only."
  }
}

variable "ebs_encrypted" {
  description = "Whether the volume is encrypted."
  type        = bool
  default     = true
  nullable    = false
}

variable "ebs_kms_key_id" {
  description = "ARN of the KMS key for the volume. Empty: the account's default key."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = var.ebs_kms_key_id == "" || var.ebs_encrypted
    error_message = "ebs_kms_key_id needs ebs_encrypted = true."
  }

  validation {
    condition     = var.ebs_kms_key_id == "" || can(regex("^arn:[^:]+:kms:[^:]*:[0-9]{12}:(key|alias)/.+$", var.ebs_kms_key_id))
    error_message = "ebs_kms_key_id must be the ARN of a KMS key."
  }
}

# Entity 3: the Kubernetes node.
variable "cluster_endpoint" {
  description = "URL of the cluster's API server. Empty (not with BOTTLEROCKET): each node asks EKS at boot, which throttles when many boot at once."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = var.cluster_endpoint == "" || can(regex("^https://[^\\s\"'\\\\]+$", var.cluster_endpoint))
    error_message = "cluster_endpoint must be an https:// URL."
  }

  validation {
    condition     = var.cluster_endpoint == "" || (var.cluster_ca != "" && (var.service_cidr != "" || var.ami_type != "AL2023"))
    error_message = "cluster_endpoint goes together with cluster_ca and, for AL2023, service_cidr."
  }

  validation {
    condition     = var.cluster_endpoint != "" || var.ami_type != "BOTTLEROCKET"
    error_message = "cluster_endpoint and cluster_ca are needed with ami_type BOTTLEROCKET."
  }
}

variable "cluster_ca" {
  description = "Certificate authority of the API server, base64, as EKS gives it. Needed with cluster_endpoint."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = can(regex("^[A-Za-z0-9+/]*=*$", var.cluster_ca))
    error_message = "cluster_ca must be base64, as `aws eks describe-cluster` prints it."
  }
}

variable "service_cidr" {
  description = "Address range of the cluster's Services, such as 10.100.0.0/16 or, in an IPv6 cluster, fd12:3456::/108. Needed with cluster_endpoint for AL2023."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = var.service_cidr == "" || can(cidrhost(var.service_cidr, 0))
    error_message = "service_cidr must be an address range in CIDR notation."
  }
}

variable "max_pods" {
  description = "Most pods on a node, 1 to 737. 0: what the image computes from the instance type."
  type        = number
  default     = 0
  nullable    = false

  validation {
    condition     = var.max_pods >= 0 && var.max_pods <= 737 && floor(var.max_pods) == var.max_pods
    error_message = "max_pods must be a whole number from 0 to 737 (the most that the VPC CNI gives a node)."
  }
}

variable "kube_reserved" {
  description = "Resources kept for Kubernetes' own daemons: cpu, memory, ephemeral-storage, pid to Kubernetes quantities."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for key, value in var.kube_reserved : contains(["cpu", "memory", "ephemeral-storage", "pid"], key) && can(regex("^[0-9]+(\\.[0-9]+)?(m|k|[KMGT]i?)?$", value))])
    error_message = "kube_reserved must map cpu, memory, ephemeral-storage or pid to Kubernetes quantities such as 100m or 1Gi."
  }
}

variable "system_reserved" {
  description = "Resources kept for the operating system: cpu, memory, ephemeral-storage, pid to Kubernetes quantities."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for key, value in var.system_reserved : contains(["cpu", "memory", "ephemeral-storage", "pid"], key) && can(regex("^[0-9]+(\\.[0-9]+)?(m|k|[KMGT]i?)?$", value))])
    error_message = "system_reserved must map cpu, memory, ephemeral-storage or pid to Kubernetes quantities such as 100m or 1Gi."
  }
}

variable "eviction_hard" {
  description = "Hard eviction thresholds of the kubelet: signal to quantity or percentage. Empty: the image's."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for key, value in var.eviction_hard : contains(["memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree", "pid.available"], key) && can(regex("^[0-9]+(\\.[0-9]+)?(%|m|k|[KMGT]i?)?$", value))])
    error_message = "eviction_hard must map kubelet signals (memory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree, pid.available) to a quantity or a percentage."
  }
}

variable "node_labels" {
  description = "Labels of your own for the nodes. Keys and values in Kubernetes' syntax."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for key in keys(var.node_labels) : !contains(["sector", "fleet", "size", "pool_size", "kind", "lifecycle"], key)])
    error_message = "node_labels must not use reserved keys (${join(", ", [for key in keys(var.node_labels) : key if contains(["sector", "fleet", "size", "pool_size", "kind", "lifecycle"], key)])}): sector, fleet, size, pool_size, kind and lifecycle are set by the module."
  }

  validation {
    condition     = alltrue([for key in keys(var.node_labels) : can(regex("^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$", key))])
    error_message = "node_labels must have keys of the form [prefix/]name: a DNS prefix of at most 253 and a name of at most 63 characters."
  }

  validation {
    condition     = alltrue([for value in values(var.node_labels) : value == null ? false : can(regex("^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$", value))])
    error_message = "node_labels must have label values: at most 63 letters, digits, '-', '_' or '.', a letter or digit at both ends."
  }

  validation {
    condition = alltrue([
      for key in keys(var.node_labels) :
      !can(regex("^([^/]+\\.)?(kubernetes\\.io|k8s\\.io)/", key)) || can(regex("^([^/]+\\.)?(kubelet|node)\\.kubernetes\\.io/", key))
    ])
    error_message = "node_labels must not use prefixes under kubernetes.io or k8s.io other than kubelet.kubernetes.io and node.kubernetes.io: the kubelet refuses to start with them."
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

  validation {
    condition     = alltrue([for taint in var.node_taints : can(regex("^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$", taint.key))])
    error_message = "node_taints must have keys of the form [prefix/]name: a DNS prefix of at most 253 and a name of at most 63 characters."
  }

  validation {
    condition     = alltrue([for taint in var.node_taints : can(regex("^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$", taint.value))])
    error_message = "node_taints must have label values: at most 63 letters, digits, '-', '_' or '.', a letter or digit at both ends."
  }

  validation {
    condition     = length(distinct([for taint in var.node_taints : "${taint.key}:${taint.effect}"])) == length(var.node_taints)
    error_message = "node_taints must have each key and effect once."
  }

  validation {
    condition     = alltrue([for taint in var.node_taints : taint.key != "fleet-reconciler.io/draining"])
    error_message = "node_taints must not use fleet-reconciler.io/draining: nodes with it are being emptied."
  }
}

variable "on_demand_prefer_no_schedule_taint" {
  description = "Whether on-demand nodes register with lifecycle=OnDemand:PreferNoSchedule, so that pods go to spot nodes first."
  type        = bool
  default     = false
  nullable    = false
}
