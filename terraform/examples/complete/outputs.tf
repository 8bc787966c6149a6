output "role_arn" {
  description = "Role of the capacity loop, for `reconciler manifest --identity irsa=…`."
  value       = module.reconciler.role_arn
}

output "queue_url" {
  description = "Interruption queue, for `interruption.queue_url` of the sector config."
  value       = module.reconciler.queue_url
}

output "fleet_id" {
  description = "Ids of the fleets by name."
  value       = module.fleets.fleet_id
}
