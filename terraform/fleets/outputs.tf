output "fleet_id" {
  description = "Ids of the EC2 Fleets by fleet name."
  value       = { for name, fleet in module.fleet : name => fleet.fleet_id }
}

output "auto_scaling_group" {
  description = "Names of the Auto Scaling groups by fleet name."
  value       = { for name, group in module.group : name => group.auto_scaling_group }
}

output "template_id" {
  description = "Ids of the launch templates by fleet name."
  value       = { for name, fleet in merge(module.fleet, module.group) : name => fleet.template_id }
}

output "template_version" {
  description = "Newest launch template versions by fleet name."
  value       = { for name, fleet in merge(module.fleet, module.group) : name => fleet.template_version }
}

output "tags" {
  description = "Tags of each fleet, by fleet name."
  value       = { for name, fleet in merge(module.fleet, module.group) : name => fleet.tags }
}

output "node_labels" {
  description = "Labels that each fleet's nodes register with, by fleet name."
  value       = { for name, fleet in merge(module.fleet, module.group) : name => fleet.node_labels }
}

output "instance_types" {
  description = "Instance types each fleet may launch, by fleet name."
  value       = { for name, fleet in merge(module.fleet, module.group) : name => fleet.instance_types }
}

output "user_data" {
  description = "What the instances of each fleet are given at their first boot, in plain text, by fleet name."
  value       = { for name, fleet in merge(module.fleet, module.group) : name => fleet.user_data }
}

output "image_id" {
  description = "Image that new nodes of each fleet boot, by fleet name: what an alias in ami names now."
  value       = { for name, fleet in merge(module.fleet, module.group) : name => fleet.image_id }
}

output "subnet_ids" {
  description = "Subnets that each fleet launches into by availability zone, by fleet name."
  value       = { for name, fleet in merge(module.fleet, module.group) : name => fleet.subnet_ids }
}
