output "oidc_provider_arn" {
  description = "The cluster's IAM OIDC provider."
  value       = aws_iam_openid_connect_provider.cluster.arn
}

output "security_group_id" {
  description = "The cluster's security group, which the nodes share."
  value       = aws_eks_cluster.this.vpc_config[0].cluster_security_group_id
}

output "node_role_arn" {
  description = "The nodes' role."
  value       = aws_iam_role.node.arn
}

output "instance_profile_name" {
  description = "The nodes' instance profile."
  value       = aws_iam_instance_profile.node.name

  # Nodes that boot before they are let in do not join.
  depends_on = [aws_eks_access_entry.node, aws_iam_role_policy_attachment.node]
}
