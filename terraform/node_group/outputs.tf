output "auto_scaling_group" {
  description = "Name of the Auto Scaling group, for `auto_scaling_group` of the sector config."
  value       = aws_eks_node_group.this.resources[0].autoscaling_groups[0].name
}

output "node_labels" {
  description = "Labels that the nodes register with."
  value       = local.node_labels
}

output "group_tags" {
  description = "Tags of the Auto Scaling group that say what a node of it will look like."
  value       = local.group_tags
}
