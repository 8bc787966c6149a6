# What a plan of one fleet says. The provider is a mock: no run here proves what EC2 answers, nor that a plan after an
# apply is empty (the sandbox tests do).
mock_provider "aws" {}

variables {
  cluster_name          = "analytics"
  sector_label          = "primary"
  node_pool_size        = "small"
  node_pool_kind        = "memory"
  ami                   = "ami-0123456789abcdef0"
  security_group_id     = "sg-0123456789abcdef0"
  instance_profile_name = "analytics-node"
  private_subnet_ids    = { us-west-2b = "subnet-0bb", us-west-2a = "subnet-0aa" }
  cluster_endpoint      = "https://0123.gr7.us-west-2.eks.amazonaws.com"
  cluster_ca            = "Q0E="
  service_cidr          = "10.100.0.0/16"
}

run "spot_fleet_of_a_built_in_size" {
  command = plan

  variables {
    initial_node_count = 2
    tags               = { environment = "production" }
  }

  assert {
    condition = output.tags == tomap({
      Name                              = "analytics-primary-small"
      Spot                              = "true"
      cluster                           = "analytics"
      fleet                             = "primary-small"
      sector                            = "primary"
      kind                              = "memory"
      size                              = "small"
      environment                       = "production"
      "kubernetes.io/cluster/analytics" = "owned"
    })
    error_message = "tags are not those of the contract"
  }

  assert {
    condition     = aws_ec2_fleet.this.tags == output.tags && aws_launch_template.this.tags == output.tags
    error_message = "fleet and launch template do not carry the tags"
  }

  assert {
    condition = tomap({
      for specification in aws_launch_template.this.tag_specifications : specification.resource_type => specification.tags
    }) == tomap({ instance = output.tags, volume = output.tags })
    error_message = "instances and volumes do not carry the tags"
  }

  assert {
    condition = output.node_labels == tomap({
      sector = "primary", fleet = "primary-small", size = "small", pool_size = "small", kind = "memory", lifecycle = "Ec2Spot"
    })
    error_message = "node labels are not those of the contract"
  }

  assert {
    condition = [
      for override in aws_ec2_fleet.this.launch_template_config[0].override : "${override.instance_type} ${override.subnet_id}"
      ] == [
      "r5.xlarge subnet-0aa", "r5.xlarge subnet-0bb", "r4.xlarge subnet-0aa", "r4.xlarge subnet-0bb",
      "m5.2xlarge subnet-0aa", "m5.2xlarge subnet-0bb", "m4.2xlarge subnet-0aa", "m4.2xlarge subnet-0bb",
    ]
    error_message = "not one override per instance type and subnet"
  }

  assert {
    condition     = alltrue([for override in aws_ec2_fleet.this.launch_template_config[0].override : override.max_price == null])
    error_message = "a price limit that the variables do not state"
  }

  assert {
    condition = (
      aws_ec2_fleet.this.type == "maintain"
      && aws_ec2_fleet.this.excess_capacity_termination_policy == "no-termination"
      && aws_ec2_fleet.this.terminate_instances == false
      && aws_ec2_fleet.this.terminate_instances_with_expiration == false
      && aws_ec2_fleet.this.replace_unhealthy_instances == false
      && aws_ec2_fleet.this.launch_template_config[0].launch_template_specification[0].version == "$Latest"
    )
    error_message = "the fleet could end nodes by itself, or be modified by a new template version"
  }

  assert {
    condition = (
      aws_ec2_fleet.this.target_capacity_specification[0].default_target_capacity_type == "spot"
      && aws_ec2_fleet.this.target_capacity_specification[0].total_target_capacity == 2
      && aws_ec2_fleet.this.spot_options[0].allocation_strategy == "price-capacity-optimized"
      && length(aws_ec2_fleet.this.on_demand_options) == 0
    )
    error_message = "not a spot fleet of two nodes"
  }

  assert {
    condition = (
      aws_launch_template.this.name == "analytics-primary-small"
      && aws_launch_template.this.metadata_options[0].http_tokens == "required"
      && aws_launch_template.this.metadata_options[0].http_put_response_hop_limit == 1
      && aws_launch_template.this.block_device_mappings[0].device_name == "/dev/xvda"
      && aws_launch_template.this.block_device_mappings[0].ebs[0].encrypted == "true"
      && aws_launch_template.this.block_device_mappings[0].ebs[0].volume_type == "gp3"
      && aws_launch_template.this.iam_instance_profile[0].name == "analytics-node"
      && aws_launch_template.this.key_name == null
    )
    error_message = "the launch template is not what the variables say"
  }
}

run "on_demand_fleet_with_the_preference_taint" {
  command = plan

  variables {
    spot                               = false
    on_demand_prefer_no_schedule_taint = true
    node_taints                        = [{ key = "team", value = "data", effect = "NoSchedule" }]
  }

  assert {
    condition = (
      aws_ec2_fleet.this.target_capacity_specification[0].default_target_capacity_type == "on-demand"
      && aws_ec2_fleet.this.on_demand_options[0].allocation_strategy == "lowestPrice"
      && length(aws_ec2_fleet.this.spot_options) == 0
      && output.tags["Spot"] == "false"
      && output.node_labels["lifecycle"] == "OnDemand"
    )
    error_message = "not truthfully an on-demand fleet"
  }

  assert {
    condition = jsonencode(output.node_taints) == jsonencode([
      { effect = "NoSchedule", key = "team", value = "data" },
      { effect = "PreferNoSchedule", key = "lifecycle", value = "OnDemand" },
    ])
    error_message = "taints are not the given ones and the preference"
  }
}

run "preference_taint_is_not_for_spot" {
  command = plan

  variables {
    on_demand_prefer_no_schedule_taint = true
  }

  assert {
    condition     = length(output.node_taints) == 0
    error_message = "a spot node is tainted as on-demand"
  }
}

run "fleet_of_one_zone" {
  command = plan

  variables {
    zone           = "us-west-2b"
    instance_types = ["m7g.large"]
    node_pool_size = "arm"
    max_price      = "0.25"
  }

  assert {
    condition     = output.fleet_name == "primary-arm-us-west-2b" && output.tags["fleet"] == "primary-arm-us-west-2b"
    error_message = "the zone is not in the fleet's name"
  }

  assert {
    condition = (
      length(aws_ec2_fleet.this.launch_template_config[0].override) == 1
      && aws_ec2_fleet.this.launch_template_config[0].override[0].subnet_id == "subnet-0bb"
      && aws_ec2_fleet.this.launch_template_config[0].override[0].instance_type == "m7g.large"
      && aws_ec2_fleet.this.launch_template_config[0].override[0].max_price == "0.25"
    )
    error_message = "not the one zone, type and price asked for"
  }
}

run "al2023_user_data_is_a_node_config" {
  command = plan

  variables {
    max_pods        = 58
    kube_reserved   = { cpu = "100m" }
    system_reserved = { memory = "200Mi" }
    eviction_hard   = { "memory.available" = "5%" }
    node_taints     = [{ key = "gpu", effect = "NoSchedule" }]
    node_labels     = { team = "data" }
  }

  assert {
    condition     = base64decode(aws_launch_template.this.user_data) == output.user_data
    error_message = "user data is not known at plan time"
  }

  assert {
    condition     = strcontains(output.user_data, "Content-Type: application/node.eks.aws")
    error_message = "no part for nodeadm"
  }

  assert {
    condition = jsondecode(regex("(?m)^\\{.*\\}$", output.user_data)).spec == {
      cluster = {
        name                 = "analytics"
        apiServerEndpoint    = "https://0123.gr7.us-west-2.eks.amazonaws.com"
        certificateAuthority = "Q0E="
        cidr                 = "10.100.0.0/16"
      }
      kubelet = {
        config = {
          maxPods            = 58
          kubeReserved       = { cpu = "100m" }
          systemReserved     = { memory = "200Mi" }
          evictionHard       = { "memory.available" = "5%" }
          registerWithTaints = [{ key = "gpu", value = "", effect = "NoSchedule" }]
        }
        flags = ["--node-labels=fleet=primary-small,kind=memory,lifecycle=Ec2Spot,pool_size=small,sector=primary,size=small,team=data"]
      }
    }
    error_message = "the NodeConfig is not what the variables say"
  }
}

run "al2023_without_cluster_facts_asks_eks" {
  command = plan

  variables {
    cluster_endpoint = ""
    cluster_ca       = ""
    service_cidr     = ""
  }

  assert {
    condition = (
      strcontains(output.user_data, "Content-Type: text/x-shellscript-per-boot;")
      && strcontains(output.user_data, "\n#!/bin/bash\n")
      && strcontains(output.user_data, "aws eks describe-cluster --name 'analytics'")
      && strcontains(output.user_data, "\nNODECONFIG\n")
      && !strcontains(output.user_data, "application/node.eks.aws")
    )
    error_message = "the node would boot without knowing its cluster"
  }
}

run "bottlerocket_user_data_is_toml" {
  command = plan

  variables {
    ami_type      = "BOTTLEROCKET"
    max_pods      = 58
    kube_reserved = { cpu = "100m" }
    node_taints   = [{ key = "gpu", value = "a", effect = "NoSchedule" }, { key = "gpu", value = "a", effect = "NoExecute" }]
  }

  assert {
    condition     = output.user_data == <<-EOT
      [settings.kubernetes]
      "api-server" = "https://0123.gr7.us-west-2.eks.amazonaws.com"
      "cluster-certificate" = "Q0E="
      "cluster-name" = "analytics"
      "max-pods" = 58

      [settings.kubernetes.kube-reserved]
      "cpu" = "100m"

      [settings.kubernetes.node-labels]
      "fleet" = "primary-small"
      "kind" = "memory"
      "lifecycle" = "Ec2Spot"
      "pool_size" = "small"
      "sector" = "primary"
      "size" = "small"

      [settings.kubernetes.node-taints]
      "gpu" = ["a:NoSchedule","a:NoExecute"]
    EOT
    error_message = "not the settings of the variables"
  }

  assert {
    condition     = aws_launch_template.this.block_device_mappings[0].device_name == "/dev/xvdb"
    error_message = "ebs_size would grow the system volume, not the nodes' data"
  }
}

run "hostile_tag_value_arrives_literally" {
  command = plan

  variables {
    tags = { note = "$${file(\"/etc/hostname\")} %%{ if true } \"quoted\" 'x' \\ ü" }
  }

  assert {
    condition     = output.tags["note"] == join("", ["$", "{file(\"/etc/hostname\")} %", "{ if true } \"quoted\" 'x' \\ ü"])
    error_message = "the tag's value was changed on its way"
  }
}
