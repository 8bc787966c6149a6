# Rules of the Kubernetes node: its cluster, labels and taints. One run that each rule accepts, one that it rejects.
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
