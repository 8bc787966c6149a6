output "private_subnet_ids" {
  description = "Private subnets by availability zone."
  value       = { for zone, subnet in aws_subnet.private : zone => subnet.id }

  # Nodes that boot before the way out exists do not join.
  depends_on = [aws_route_table_association.private, aws_route_table_association.public]
}
