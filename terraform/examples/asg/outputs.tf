output "auto_scaling_groups" {
  description = "Names of the Auto Scaling groups, for `auto_scaling_group` of the sector config."
  value       = { for name, group in module.node_group : name => group.auto_scaling_group }
}
