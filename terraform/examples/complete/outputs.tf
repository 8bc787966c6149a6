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

output "sector_config" {
  description = "A first sector config, YAML: `terraform output -raw sector_config > sectors.yaml`."
  value = yamlencode({
    cluster        = var.cluster_name
    regions        = [var.region]
    default_sector = "primary"
    interruption   = { queue_url = module.reconciler.queue_url }
    terraform      = local.fleet_variables
    sectors = {
      primary = {
        kind = "memory"
        fleets = [
          { size = "small", spot = false, min_capacity = 2, max_capacity = 20 },
          { size = "medium", spot = true, min_capacity = 0, max_capacity = 20 },
        ]
      }
    }
  })
}
