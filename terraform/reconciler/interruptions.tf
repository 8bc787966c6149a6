# Notices of what AWS is about to do to nodes: the capacity loop reads them (docs/interruptions.md).
locals {
  interruption_events = {
    spot-interruption = { source = ["aws.ec2"], detail-type = ["EC2 Spot Instance Interruption Warning"] }
    rebalance         = { source = ["aws.ec2"], detail-type = ["EC2 Instance Rebalance Recommendation"] }
    state-change      = { source = ["aws.ec2"], detail-type = ["EC2 Instance State-change Notification"] }
    scheduled-change  = { source = ["aws.health"], detail-type = ["AWS Health Event"], detail = { service = ["EC2"], eventTypeCategory = ["scheduledChange"] } }
    group-lifecycle   = { source = ["aws.autoscaling"], detail-type = ["EC2 Instance-terminate Lifecycle Action"] }
  }
  queue_name = "${var.cluster_name}-fleet-reconciler"
}

resource "aws_sqs_queue" "interruptions" {
  for_each = toset(var.interruption_queue ? [local.queue_name] : [])

  name = each.value
  # A lifecycle action is held while its node is drained, for ten minutes and more, and a leader that takes over
  # meanwhile receives it again. SQS drops a message of this age even while one holds it.
  message_retention_seconds = 1200
  sqs_managed_sse_enabled   = true
  tags                      = var.tags
}

resource "aws_sqs_queue_policy" "interruptions" {
  for_each = aws_sqs_queue.interruptions

  queue_url = each.value.url
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid       = "TakeEvents"
        Effect    = "Allow"
        Action    = "sqs:SendMessage"
        Resource  = each.value.arn
        Principal = { Service = "events.amazonaws.com" }
        Condition = { ArnEquals = { "aws:SourceArn" = [for rule in aws_cloudwatch_event_rule.interruptions : rule.arn] } }
      },
      {
        Sid       = "RefusePlainHttp"
        Effect    = "Deny"
        Action    = "sqs:*"
        Resource  = each.value.arn
        Principal = "*"
        Condition = { Bool = { "aws:SecureTransport" = "false" } }
      },
    ]
  })
}

resource "aws_cloudwatch_event_rule" "interruptions" {
  for_each = { for name, pattern in local.interruption_events : name => pattern if var.interruption_queue }

  name          = "${local.rule_prefix}-${each.key}"
  description   = "${each.value["detail-type"][0]} for nodes of EKS cluster ${var.cluster_name}"
  event_pattern = jsonencode(each.value)
  tags          = var.tags
}

resource "aws_cloudwatch_event_target" "interruptions" {
  for_each = aws_cloudwatch_event_rule.interruptions

  rule = each.value.name
  arn  = aws_sqs_queue.interruptions[local.queue_name].arn
}

resource "aws_iam_role_policy" "interruptions" {
  for_each = aws_sqs_queue.interruptions

  name = "interruptions"
  role = aws_iam_role.capacity_loop.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid      = "ReadNotices"
      Effect   = "Allow"
      Action   = ["sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:ReceiveMessage"]
      Resource = each.value.arn
    }]
  })
}
