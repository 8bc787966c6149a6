output "reconciler" {
  description = "Values for the install, the sector config and the pipelines."
  value       = module.reconciler
}
