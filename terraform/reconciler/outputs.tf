output "role_arn" {
  description = "ARN of the capacity loop's role, for `reconciler manifest --identity irsa=…`."
  value       = aws_iam_role.capacity_loop.arn
}

output "queue_url" {
  description = "URL of the interruption queue, for `interruption.queue_url` of the sector config. Empty: none was made."
  value       = join("", [for queue in aws_sqs_queue.interruptions : queue.url])
}

output "state_bucket" {
  description = "Name of the state's bucket, for `terraform.backend.bucket` of the sector config. Empty: none was made."
  value       = join("", [for bucket in aws_s3_bucket.state : bucket.bucket])
}

output "plan_role_arn" {
  description = "ARN of the role that plans, AWS_PLAN_ROLE of the pipelines. Empty: none was made."
  value       = try(aws_iam_role.pipelines["plan"].arn, "")
}

output "apply_role_arn" {
  description = "ARN of the role that applies, AWS_APPLY_ROLE of the pipelines. Empty: none was made."
  value       = try(aws_iam_role.pipelines["apply"].arn, "")
}
