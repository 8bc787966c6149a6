output "template_id" {
  description = "Id of the launch template (lt-…)."
  value       = aws_launch_template.this.id
}

output "template_version" {
  description = "Newest version of the launch template, the one new nodes are made from."
  value       = aws_launch_template.this.latest_version
}

output "fleet_name" {
  description = "Name of the fleet: <sector>-<size>, then -<zone> and -spot or -on-demand where zone and lifecycle_in_name say so. The value of label and tag `fleet`."
  value       = local.fleet_name
}

output "node_labels" {
  description = "Labels that the fleet's nodes register with."
  value       = local.node_labels
}

output "node_taints" {
  description = "Taints that the fleet's nodes register with, as Kubernetes objects."
  value       = local.node_taints
}

output "instance_types" {
  description = "Instance types the fleet may launch, in the order they were given."
  value       = local.instance_types
}

output "user_data" {
  description = "What an instance is given at its first boot, in plain text."
  value       = local.user_data
}

output "image_id" {
  description = "Image that new nodes boot: what an alias in ami names now."
  value       = local.image_id
}

output "subnet_ids" {
  description = "Subnets that the fleet launches into, by availability zone."
  value       = { for zone, id in local.subnet_of_zone : zone => id if var.zone == "" || zone == var.zone }
}
