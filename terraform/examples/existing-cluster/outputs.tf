output "reconciler" {
  description = "What the install, the sector config and the pipelines are told."
  value       = module.reconciler
}
