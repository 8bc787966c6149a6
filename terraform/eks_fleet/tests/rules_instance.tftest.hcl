# Rules of the instance: its image, volume and access. One run that each rule accepts, one that it rejects.
# The provider is a mock: no run proves what EC2 does with the result, nor that a plan after an apply is empty
# (the tests against the emulated AWS do).
mock_provider "aws" {}

variables {
  cluster_name          = "analytics"
  sector_label          = "primary"
  node_pool_size        = "small"
  node_pool_kind        = "memory"
  ami                   = "ami-0123456789abcdef0"
  security_group_id     = "sg-0123456789abcdef0"
  instance_profile_name = "analytics-node"
  private_subnet_ids    = { us-west-2a = "subnet-0aa", us-west-2b = "subnet-0bb" }
}

run "accepts_ami_id" {
  command = plan

  variables {
    ami = "ami-0ab"
  }
}

run "rejects_ami_id" {
  command = plan

  variables {
    ami = "amazon-linux"
  }

  expect_failures = [var.ami]
}

run "rejects_image_that_a_parameter_names" {
  command = plan

  variables {
    ami = "resolve:ssm:/a/b"
  }

  expect_failures = [var.ami]
}

run "accepts_ami_type" {
  command = plan

  variables {
    ami_type = "AL2023"
  }
}

run "rejects_ami_type" {
  command = plan

  variables {
    ami_type = "WINDOWS"
  }

  expect_failures = [var.ami_type]
}

run "accepts_security_group_id" {
  command = plan

  variables {
    security_group_id = "sg-0ab"
  }
}

run "rejects_security_group_id" {
  command = plan

  variables {
    security_group_id = "default"
  }

  expect_failures = [var.security_group_id]
}

run "accepts_metadata_hop_limit" {
  command = plan

  variables {
    metadata_hop_limit = 2
  }
}

run "rejects_metadata_hop_limit" {
  command = plan

  variables {
    metadata_hop_limit = 0
  }

  expect_failures = [var.metadata_hop_limit]
}

run "accepts_ebs_size_of_at_least_1" {
  command = plan

  variables {
    ebs_size = 1
  }
}

run "rejects_ebs_size_of_at_least_1" {
  command = plan

  variables {
    ebs_size = 0
  }

  expect_failures = [var.ebs_size]
}

run "accepts_ebs_size_up_to_65536" {
  command = plan

  variables {
    ebs_size = 65536
  }
}

run "rejects_ebs_size_up_to_65536" {
  command = plan

  variables {
    ebs_size = 65537
  }

  expect_failures = [var.ebs_size]
}

run "accepts_ebs_type" {
  command = plan

  variables {
    ebs_type = "gp2"
  }
}

run "rejects_ebs_type" {
  command = plan

  variables {
    ebs_type = "floppy"
  }

  expect_failures = [var.ebs_type]
}

run "accepts_iops_where_the_type_needs_them" {
  command = plan

  variables {
    ebs_type = "io2"
    ebs_iops = 1000
  }
}

run "rejects_iops_where_the_type_needs_them" {
  command = plan

  variables {
    ebs_type = "io2"
  }

  expect_failures = [var.ebs_iops]
}

run "accepts_iops_where_the_type_has_them" {
  command = plan

  variables {
    ebs_type = "gp3"
    ebs_iops = 4000
  }
}

run "rejects_iops_where_the_type_has_them" {
  command = plan

  variables {
    ebs_type = "gp2"
    ebs_iops = 4000
  }

  expect_failures = [var.ebs_iops]
}

run "accepts_throughput_up_to_1000" {
  command = plan

  variables {
    ebs_throughput = 1000
  }
}

run "rejects_throughput_up_to_1000" {
  command = plan

  variables {
    ebs_throughput = 1001
  }

  expect_failures = [var.ebs_throughput]
}

run "rejects_iops_with_a_fraction" {
  command = plan

  variables {
    ebs_iops = 3000.5
  }

  expect_failures = [var.ebs_iops]
}

run "rejects_throughput_with_a_fraction" {
  command = plan

  variables {
    ebs_throughput = 125.5
  }

  expect_failures = [var.ebs_throughput]
}

run "accepts_throughput_of_gp3_only" {
  command = plan

  variables {
    ebs_type       = "gp3"
    ebs_throughput = 200
  }
}

run "rejects_throughput_of_gp3_only" {
  command = plan

  variables {
    ebs_type       = "gp2"
    ebs_throughput = 200
  }

  expect_failures = [var.ebs_throughput]
}

run "accepts_kms_key_of_an_encrypted_volume" {
  command = plan

  variables {
    ebs_kms_key_id = "arn:aws:kms:us-west-2:123456789012:key/nodes"
  }
}

run "rejects_kms_key_of_an_encrypted_volume" {
  command = plan

  variables {
    ebs_kms_key_id = "arn:aws:kms:us-west-2:123456789012:key/nodes"
    ebs_encrypted  = false
  }

  expect_failures = [var.ebs_kms_key_id]
}

run "accepts_kms_key_arn" {
  command = plan

  variables {
    ebs_kms_key_id = "arn:aws:kms:us-west-2:123456789012:key/nodes"
  }
}

run "rejects_kms_key_arn" {
  command = plan

  variables {
    ebs_kms_key_id = "alias/nodes"
  }

  expect_failures = [var.ebs_kms_key_id]
}

run "accepts_iops_of_gp3_from_its_baseline" {
  command = plan

  variables {
    ebs_type = "gp3"
    ebs_iops = 3000
  }
}

run "rejects_iops_of_gp3_below_its_baseline" {
  command = plan

  variables {
    ebs_type = "gp3"
    ebs_iops = 2999
  }

  expect_failures = [var.ebs_iops]
}
