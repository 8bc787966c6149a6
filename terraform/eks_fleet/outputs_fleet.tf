output "fleet_id" {
  description = "Id of the EC2 Fleet (fleet-…). Read by the capacity loop's operators; the loop itself finds fleets by tag."
  value       = aws_ec2_fleet.this.id
}

output "tags" {
  description = "Tags of the fleet; those of its launch template, instances and volumes too, unless variables say otherwise."
  value       = local.fleet_tags
}
