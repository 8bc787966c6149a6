# Every rule of the variables: one run that it accepts, one that it rejects. The provider is a mock: no run here proves
# what EC2 does with the result, nor that a plan after an apply is empty (the sandbox tests do).
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

run "accepts_a_minimal_fleet" {
  command = plan
}

run "accepts_cluster_name_that_is_a_label_value" {
  command = plan

  variables {
    cluster_name = "a.b-c_d"
  }
}

run "rejects_cluster_name_that_is_a_label_value" {
  command = plan

  variables {
    cluster_name = "not/a label"
  }

  expect_failures = [var.cluster_name]
}

run "accepts_sector_label_that_is_a_label_value" {
  command = plan

  variables {
    sector_label = "data-2.x"
  }
}

run "rejects_sector_label_that_is_a_label_value" {
  command = plan

  variables {
    sector_label = "-data"
  }

  expect_failures = [var.sector_label]
}

run "accepts_fleet_name_of_63_characters" {
  command = plan

  variables {
    sector_label = join("", [for i in range(57) : "s"])
  }
}

run "rejects_fleet_name_of_63_characters" {
  command = plan

  variables {
    sector_label = join("", [for i in range(58) : "s"])
  }

  expect_failures = [var.sector_label]
}

run "accepts_own_size_that_is_a_label_value" {
  command = plan

  variables {
    node_pool_size = "gpu_small"
    instance_types = ["g5.xlarge"]
  }
}

run "rejects_own_size_that_is_a_label_value" {
  command = plan

  variables {
    node_pool_size = "gpu small"
    instance_types = ["g5.xlarge"]
  }

  expect_failures = [var.node_pool_size]
}

run "accepts_builtin_size" {
  command = plan

  variables {
    node_pool_size = "xlarge"
  }
}

run "rejects_builtin_size" {
  command = plan

  variables {
    node_pool_size = "huge"
  }

  expect_failures = [var.node_pool_size]
}

run "accepts_own_kind_that_is_a_label_value" {
  command = plan

  variables {
    node_pool_kind = "gpu"
    instance_types = ["g5.xlarge"]
  }
}

run "rejects_own_kind_that_is_a_label_value" {
  command = plan

  variables {
    node_pool_kind = "gpu!"
    instance_types = ["g5.xlarge"]
  }

  expect_failures = [var.node_pool_kind]
}

run "accepts_builtin_kind" {
  command = plan

  variables {
    node_pool_kind = "cpu"
  }
}

run "rejects_builtin_kind" {
  command = plan

  variables {
    node_pool_kind = "gpu"
  }

  expect_failures = [var.node_pool_kind]
}

run "accepts_zone_with_a_subnet" {
  command = plan

  variables {
    zone = "us-west-2b"
  }
}

run "rejects_zone_with_a_subnet" {
  command = plan

  variables {
    zone = "us-west-2c"
  }

  expect_failures = [var.zone]
}

run "accepts_node_count_up_to_10000" {
  command = plan

  variables {
    initial_node_count = 10000
  }
}

run "rejects_node_count_up_to_10000" {
  command = plan

  variables {
    initial_node_count = 10001
  }

  expect_failures = [var.initial_node_count]
}

run "accepts_node_count_not_negative" {
  command = plan

  variables {
    initial_node_count = 0
  }
}

run "rejects_node_count_not_negative" {
  command = plan

  variables {
    initial_node_count = -1
  }

  expect_failures = [var.initial_node_count]
}

run "accepts_node_count_whole" {
  command = plan

  variables {
    initial_node_count = 3
  }
}

run "rejects_node_count_whole" {
  command = plan

  variables {
    initial_node_count = 1.5
  }

  expect_failures = [var.initial_node_count]
}

run "accepts_instance_type_names" {
  command = plan

  variables {
    instance_types = ["m7g.xlarge", "u-6tb1.metal"]
  }
}

run "rejects_instance_type_names" {
  command = plan

  variables {
    instance_types = ["m7g xlarge"]
  }

  expect_failures = [var.instance_types]
}

run "accepts_instance_types_once" {
  command = plan

  variables {
    instance_types = ["m5.large", "m5.xlarge"]
  }
}

run "rejects_instance_types_once" {
  command = plan

  variables {
    instance_types = ["m5.large", "m5.large"]
  }

  expect_failures = [var.instance_types]
}

run "accepts_at_least_one_subnet" {
  command = plan

  variables {
    private_subnet_ids = { us-west-2a = "subnet-0aa" }
  }
}

run "rejects_at_least_one_subnet" {
  command = plan

  variables {
    private_subnet_ids = {}
  }

  expect_failures = [var.private_subnet_ids]
}

run "accepts_subnet_ids" {
  command = plan

  variables {
    private_subnet_ids = { us-west-2a = "subnet-aaa" }
  }
}

run "rejects_subnet_ids" {
  command = plan

  variables {
    private_subnet_ids = { us-west-2a = "vpc-0aa" }
  }

  expect_failures = [var.private_subnet_ids]
}

run "accepts_max_price_that_is_a_number" {
  command = plan

  variables {
    max_price = "0.25"
  }
}

run "rejects_max_price_that_is_a_number" {
  command = plan

  variables {
    max_price = "cheap"
  }

  expect_failures = [var.max_price]
}

run "accepts_max_price_above_zero" {
  command = plan

  variables {
    max_price = "0.01"
  }
}

run "rejects_max_price_above_zero" {
  command = plan

  variables {
    max_price = "0.00"
  }

  expect_failures = [var.max_price]
}

run "accepts_max_price_of_spot_only" {
  command = plan

  variables {
    max_price = "1"
    spot      = true
  }
}

run "rejects_max_price_of_spot_only" {
  command = plan

  variables {
    max_price = "1"
    spot      = false
  }

  expect_failures = [var.max_price]
}

run "accepts_spot_allocation_strategy" {
  command = plan

  variables {
    spot_allocation_strategy = "capacity-optimized"
  }
}

run "rejects_spot_allocation_strategy" {
  command = plan

  variables {
    spot_allocation_strategy = "cheapest"
  }

  expect_failures = [var.spot_allocation_strategy]
}

run "accepts_tag_keys_near_the_reserved_ones" {
  command = plan

  variables {
    tags = { NAME = "x", sectors = "x", "kubernetes.io/cluster/other" = "shared" }
  }
}

run "rejects_reserved_tag_capital_Name" {
  command = plan

  variables {
    tags = { "Name" = "x" }
  }

  expect_failures = [var.tags]
}

run "rejects_reserved_tag_capital_Spot" {
  command = plan

  variables {
    tags = { "Spot" = "x" }
  }

  expect_failures = [var.tags]
}

run "rejects_reserved_tag_cluster" {
  command = plan

  variables {
    tags = { "cluster" = "x" }
  }

  expect_failures = [var.tags]
}

run "rejects_reserved_tag_fleet" {
  command = plan

  variables {
    tags = { "fleet" = "x" }
  }

  expect_failures = [var.tags]
}

run "rejects_reserved_tag_kind" {
  command = plan

  variables {
    tags = { "kind" = "x" }
  }

  expect_failures = [var.tags]
}

run "rejects_reserved_tag_managed" {
  command = plan

  variables {
    tags = { "managed" = "x" }
  }

  expect_failures = [var.tags]
}

run "rejects_reserved_tag_name" {
  command = plan

  variables {
    tags = { "name" = "x" }
  }

  expect_failures = [var.tags]
}

run "rejects_reserved_tag_sector" {
  command = plan

  variables {
    tags = { "sector" = "x" }
  }

  expect_failures = [var.tags]
}

run "rejects_reserved_tag_size" {
  command = plan

  variables {
    tags = { "size" = "x" }
  }

  expect_failures = [var.tags]
}

run "rejects_reserved_tag_cluster_ownership" {
  command = plan

  variables {
    tags = { "kubernetes.io/cluster/analytics" = "x" }
  }

  expect_failures = [var.tags]
}

run "accepts_tag_keys_without_aws_prefix" {
  command = plan

  variables {
    tags = { "awsome:x" = "y" }
  }
}

run "rejects_tag_keys_without_aws_prefix" {
  command = plan

  variables {
    tags = { "AWS:x" = "y" }
  }

  expect_failures = [var.tags]
}

run "accepts_42_tags" {
  command = plan

  variables {
    tags = { for i in range(42) : "key-${i}" => "x" }
  }
}

run "rejects_42_tags" {
  command = plan

  variables {
    tags = { for i in range(43) : "key-${i}" => "x" }
  }

  expect_failures = [var.tags]
}

run "accepts_tag_key_of_128_characters" {
  command = plan

  variables {
    tags = { (join("", [for i in range(128) : "é"])) = "x" }
  }
}

run "rejects_tag_key_of_128_characters" {
  command = plan

  variables {
    tags = { (join("", [for i in range(129) : "é"])) = "x" }
  }

  expect_failures = [var.tags]
}

run "rejects_empty_tag_key" {
  command = plan

  variables {
    tags = { "" = "x" }
  }

  expect_failures = [var.tags]
}

run "accepts_tag_value_of_256_characters" {
  command = plan

  variables {
    tags = { note = join("", [for i in range(256) : "é"]) }
  }
}

run "rejects_tag_value_of_256_characters" {
  command = plan

  variables {
    tags = { note = join("", [for i in range(257) : "é"]) }
  }

  expect_failures = [var.tags]
}

run "rejects_null_tag_value" {
  command = plan

  variables {
    tags = { note = null }
  }

  expect_failures = [var.tags]
}

run "accepts_tag_value_without_control_characters" {
  command = plan

  variables {
    tags = { note = "$${file(\"/etc/hostname\")} %%{ if true } ünïcode" }
  }
}

run "rejects_tag_value_without_control_characters" {
  command = plan

  variables {
    tags = { note = "two\nlines" }
  }

  expect_failures = [var.tags]
}

run "accepts_tag_key_without_control_characters" {
  command = plan

  variables {
    tags = { "a b" = "x" }
  }
}

run "rejects_tag_key_without_control_characters" {
  command = plan

  variables {
    tags = { "a\tb" = "x" }
  }

  expect_failures = [var.tags]
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

run "accepts_https_endpoint" {
  command = plan

  variables {
    cluster_endpoint = "https://example.com"
    cluster_ca       = "Q0E="
    service_cidr     = "10.100.0.0/16"
  }
}

run "rejects_https_endpoint" {
  command = plan

  variables {
    cluster_endpoint = "http://example.com"
    cluster_ca       = "Q0E="
    service_cidr     = "10.100.0.0/16"
  }

  expect_failures = [var.cluster_endpoint]
}

run "accepts_endpoint_with_its_facts" {
  command = plan

  variables {
    cluster_endpoint = "https://example.com"
    cluster_ca       = "Q0E="
    service_cidr     = "10.100.0.0/16"
  }
}

run "rejects_endpoint_with_its_facts" {
  command = plan

  variables {
    cluster_endpoint = "https://example.com"
    cluster_ca       = "Q0E="
  }

  expect_failures = [var.cluster_endpoint]
}

run "accepts_bottlerocket_with_an_endpoint" {
  command = plan

  variables {
    ami_type         = "BOTTLEROCKET"
    cluster_endpoint = "https://example.com"
    cluster_ca       = "Q0E="
  }
}

run "rejects_bottlerocket_with_an_endpoint" {
  command = plan

  variables {
    ami_type = "BOTTLEROCKET"
  }

  expect_failures = [var.cluster_endpoint]
}

run "accepts_base64_cluster_ca" {
  command = plan

  variables {
    cluster_ca = "Q0E="
  }
}

run "rejects_base64_cluster_ca" {
  command = plan

  variables {
    cluster_ca = "-----BEGIN CERTIFICATE-----"
  }

  expect_failures = [var.cluster_ca]
}

run "accepts_service_cidr" {
  command = plan

  variables {
    service_cidr = "10.100.0.0/16"
  }
}

run "rejects_service_cidr" {
  command = plan

  variables {
    service_cidr = "10.100.0.0"
  }

  expect_failures = [var.service_cidr]
}

run "accepts_max_pods_up_to_737" {
  command = plan

  variables {
    max_pods = 737
  }
}

run "rejects_max_pods_up_to_737" {
  command = plan

  variables {
    max_pods = 738
  }

  expect_failures = [var.max_pods]
}

run "accepts_kube_reserved_quantities" {
  command = plan

  variables {
    kube_reserved = { cpu = "100m", memory = "1.5Gi", pid = "1000" }
  }
}

run "rejects_kube_reserved_quantities" {
  command = plan

  variables {
    kube_reserved = { cpu = "a lot" }
  }

  expect_failures = [var.kube_reserved]
}

run "accepts_system_reserved_resources" {
  command = plan

  variables {
    system_reserved = { ephemeral-storage = "1Gi" }
  }
}

run "rejects_system_reserved_resources" {
  command = plan

  variables {
    system_reserved = { gpu = "1" }
  }

  expect_failures = [var.system_reserved]
}

run "accepts_eviction_signals" {
  command = plan

  variables {
    eviction_hard = { "memory.available" = "5%", "nodefs.available" = "1Gi" }
  }
}

run "rejects_eviction_signals" {
  command = plan

  variables {
    eviction_hard = { "memory.left" = "5%" }
  }

  expect_failures = [var.eviction_hard]
}

run "accepts_node_labels_beside_ours" {
  command = plan

  variables {
    node_labels = { team = "data", "example.com/tier" = "" }
  }
}

run "rejects_reserved_node_label_sector" {
  command = plan

  variables {
    node_labels = { sector = "x" }
  }

  expect_failures = [var.node_labels]
}

run "rejects_reserved_node_label_fleet" {
  command = plan

  variables {
    node_labels = { fleet = "x" }
  }

  expect_failures = [var.node_labels]
}

run "rejects_reserved_node_label_size" {
  command = plan

  variables {
    node_labels = { size = "x" }
  }

  expect_failures = [var.node_labels]
}

run "rejects_reserved_node_label_pool_size" {
  command = plan

  variables {
    node_labels = { pool_size = "x" }
  }

  expect_failures = [var.node_labels]
}

run "rejects_reserved_node_label_kind" {
  command = plan

  variables {
    node_labels = { kind = "x" }
  }

  expect_failures = [var.node_labels]
}

run "rejects_reserved_node_label_lifecycle" {
  command = plan

  variables {
    node_labels = { lifecycle = "x" }
  }

  expect_failures = [var.node_labels]
}

run "accepts_node_label_key_syntax" {
  command = plan

  variables {
    node_labels = { "example.com/a.b_c-d" = "x" }
  }
}

run "rejects_node_label_key_syntax" {
  command = plan

  variables {
    node_labels = { "example.com/" = "x" }
  }

  expect_failures = [var.node_labels]
}

run "accepts_node_label_value_of_63_characters" {
  command = plan

  variables {
    node_labels = { team = join("", [for i in range(63) : "x"]) }
  }
}

run "rejects_node_label_value_of_63_characters" {
  command = plan

  variables {
    node_labels = { team = join("", [for i in range(64) : "x"]) }
  }

  expect_failures = [var.node_labels]
}

run "accepts_node_label_prefixes_the_kubelet_may_set" {
  command = plan

  variables {
    node_labels = { "node.kubernetes.io/team" = "x", "k8s.io.example.com/a" = "x" }
  }
}

run "rejects_node_label_prefixes_the_kubelet_may_set" {
  command = plan

  variables {
    node_labels = { "node-role.kubernetes.io/worker" = "x" }
  }

  expect_failures = [var.node_labels]
}

run "accepts_taint_effects" {
  command = plan

  variables {
    node_taints = [{ key = "gpu", effect = "NoExecute" }]
  }
}

run "rejects_taint_effects" {
  command = plan

  variables {
    node_taints = [{ key = "gpu", value = "x", effect = "Never" }]
  }

  expect_failures = [var.node_taints]
}

run "accepts_taint_key_syntax" {
  command = plan

  variables {
    node_taints = [{ key = "example.com/gpu", value = "x", effect = "NoSchedule" }]
  }
}

run "rejects_taint_key_syntax" {
  command = plan

  variables {
    node_taints = [{ key = "gpu card", value = "x", effect = "NoSchedule" }]
  }

  expect_failures = [var.node_taints]
}

run "accepts_taint_value_syntax" {
  command = plan

  variables {
    node_taints = [{ key = "gpu", value = "a_b.c", effect = "NoSchedule" }]
  }
}

run "rejects_taint_value_syntax" {
  command = plan

  variables {
    node_taints = [{ key = "gpu", value = "a=b", effect = "NoSchedule" }]
  }

  expect_failures = [var.node_taints]
}

run "accepts_taint_key_and_effect_once" {
  command = plan

  variables {
    node_taints = [{ key = "a", effect = "NoSchedule" }, { key = "a", effect = "NoExecute" }]
  }
}

run "rejects_taint_key_and_effect_once" {
  command = plan

  variables {
    node_taints = [{ key = "a", effect = "NoSchedule" }, { key = "a", value = "b", effect = "NoSchedule" }]
  }

  expect_failures = [var.node_taints]
}

run "accepts_taint_keys_not_ours" {
  command = plan

  variables {
    node_taints = [{ key = "fleet-reconciler.io/dedicated", value = "x", effect = "NoSchedule" }]
  }
}

run "rejects_taint_keys_not_ours" {
  command = plan

  variables {
    node_taints = [{ key = "fleet-reconciler.io/draining", value = "x", effect = "NoSchedule" }]
  }

  expect_failures = [var.node_taints]
}

run "accepts_300_overrides" {
  command = plan

  variables {
    instance_types = [for i in range(150) : "m5.s${i}"]
  }
}

run "rejects_300_overrides" {
  command = plan

  variables {
    instance_types = [for i in range(151) : "m5.s${i}"]
  }

  expect_failures = [aws_ec2_fleet.this]
}

run "accepts_user_data_of_16_kib" {
  command = plan

  variables {
    node_labels = { for i in range(150) : "key-${i}" => join("", [for j in range(60) : "x"]) }
  }
}

run "rejects_user_data_of_16_kib" {
  command = plan

  variables {
    node_labels = { for i in range(250) : "key-${i}" => join("", [for j in range(60) : "x"]) }
  }

  expect_failures = [aws_launch_template.this]
}
