output "auto_scaling_group" {
  description = "Name of the Auto Scaling group. The capacity loop finds it by this name, or by its tags."
  value       = aws_autoscaling_group.this.name
}

output "tags" {
  description = "Tags of the group by key."
  value       = { for tag in local.group_tags : tag.key => tag.value }
}
