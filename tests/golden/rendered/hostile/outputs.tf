# Rendered by `reconciler render` from templates/root/outputs.tf.j2; change the sector config, not this file.
output "fleet_id" {
  description = "Ids of the EC2 Fleets by fleet name."
  value       = module.fleets.fleet_id
}

output "auto_scaling_group" {
  description = "Names of the Auto Scaling groups by fleet name."
  value       = module.fleets.auto_scaling_group
}

output "template_id" {
  description = "Ids of the launch templates by fleet name."
  value       = module.fleets.template_id
}

output "template_version" {
  description = "Newest launch template versions by fleet name."
  value       = module.fleets.template_version
}
