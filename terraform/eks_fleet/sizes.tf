# The built-in sizes: for each kind and size the instance types a fleet may use, best first.
# All types of one size give at least the same CPU and memory, so a planner may rely on the least of them.
locals {
  builtin_instance_types = {
    memory = {
      xsmall = ["r5.large", "r4.large", "m5.xlarge", "m4.xlarge"]
      small  = ["r5.xlarge", "r4.xlarge", "m5.2xlarge", "m4.2xlarge"]
      medium = ["r5.2xlarge", "r4.2xlarge", "m5.4xlarge", "m4.4xlarge"]
      large  = ["r5.4xlarge", "r4.4xlarge", "m5.8xlarge", "m4.10xlarge"]
      xlarge = ["r5.8xlarge", "r4.8xlarge", "m5.16xlarge", "m4.16xlarge"]
    }
    cpu = {
      xsmall = ["c5.xlarge", "c4.xlarge", "m5.xlarge", "m4.xlarge"]
      small  = ["c5.2xlarge", "c4.2xlarge", "m5.2xlarge", "m4.2xlarge"]
      medium = ["c5.4xlarge", "c4.4xlarge", "m5.4xlarge", "m4.4xlarge"]
      large  = ["c5.9xlarge", "c4.8xlarge", "m5.12xlarge", "m4.10xlarge"]
      xlarge = ["c5.18xlarge", "m5.16xlarge", "m4.16xlarge"]
    }
  }

  instance_types = (
    length(var.instance_types) > 0
    ? var.instance_types
    : try(local.builtin_instance_types[var.node_pool_kind][var.node_pool_size], [])
  )
}
