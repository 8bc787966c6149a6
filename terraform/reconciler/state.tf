# The bucket of Terraform's state: versioned, encrypted, private, over TLS only. Its lock is an object beside the state.
resource "aws_s3_bucket" "state" {
  for_each = toset(var.state_bucket == "" ? [] : [var.state_bucket])

  bucket = each.value
  tags   = var.tags

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_s3_bucket_versioning" "state" {
  for_each = aws_s3_bucket.state

  bucket = each.value.id

  versioning_configuration {
    status = "Enabled"
  }
}

resource "aws_s3_bucket_server_side_encryption_configuration" "state" {
  for_each = aws_s3_bucket.state

  bucket = each.value.id

  rule {
    bucket_key_enabled = var.state_kms_key_arn != ""

    apply_server_side_encryption_by_default {
      sse_algorithm     = var.state_kms_key_arn == "" ? "AES256" : "aws:kms"
      kms_master_key_id = var.state_kms_key_arn == "" ? null : var.state_kms_key_arn
    }
  }
}

resource "aws_s3_bucket_public_access_block" "state" {
  for_each = aws_s3_bucket.state

  bucket                  = each.value.id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_policy" "state" {
  for_each = aws_s3_bucket.state

  bucket = each.value.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "RefusePlainHttp"
      Effect    = "Deny"
      Action    = "s3:*"
      Principal = "*"
      Resource  = [each.value.arn, "${each.value.arn}/*"]
      Condition = { Bool = { "aws:SecureTransport" = "false" } }
    }]
  })

  # A policy that is put while public access is being blocked fails now and then.
  depends_on = [aws_s3_bucket_public_access_block.state]
}

resource "aws_s3_bucket_lifecycle_configuration" "state" {
  for_each = aws_s3_bucket_versioning.state

  bucket = each.value.bucket

  rule {
    id     = "old-states"
    status = "Enabled"

    filter {
      prefix = ""
    }

    noncurrent_version_expiration {
      noncurrent_days = 90
    }

    abort_incomplete_multipart_upload {
      days_after_initiation = 7
    }
  }
}
