# What an instance is given at its first boot. Only input variables go in, so it is known when planning.
locals {
  lifecycle_label = var.spot ? "Ec2Spot" : "OnDemand"

  node_labels = tomap(merge(var.node_labels, {
    sector    = var.sector_label
    fleet     = local.fleet_name
    size      = var.node_pool_size
    pool_size = var.node_pool_size
    kind      = var.node_pool_kind
    lifecycle = local.lifecycle_label
  }))

  # Asks kube-scheduler to try spot nodes first; a soft wish, so pods still land here when spot has no room.
  on_demand_taints = !var.spot && var.on_demand_prefer_no_schedule_taint ? [
    { key = "lifecycle", value = local.lifecycle_label, effect = "PreferNoSchedule" }
  ] : []
  node_taints = tolist(concat(var.node_taints, local.on_demand_taints))

  kubelet_config = merge(
    var.max_pods > 0 ? { maxPods = var.max_pods } : {},
    length(var.kube_reserved) > 0 ? { kubeReserved = var.kube_reserved } : {},
    length(var.system_reserved) > 0 ? { systemReserved = var.system_reserved } : {},
    length(var.eviction_hard) > 0 ? { evictionHard = var.eviction_hard } : {},
    length(local.node_taints) > 0 ? { registerWithTaints = local.node_taints } : {},
  )
  node_labels_flag = "--node-labels=${join(",", [for key, value in local.node_labels : "${key}=${value}"])}"

  # AL2023: nodeadm reads a NodeConfig from a part of the MIME user data. JSON is YAML, and quotes safely.
  node_config = jsonencode({
    apiVersion = "node.eks.aws/v1alpha1"
    kind       = "NodeConfig"
    spec = {
      cluster = {
        name                 = var.cluster_name
        apiServerEndpoint    = local.cluster_facts_given ? var.cluster_endpoint : "@ENDPOINT@"
        certificateAuthority = local.cluster_facts_given ? var.cluster_ca : "@CA@"
        cidr                 = local.cluster_facts_given ? var.service_cidr : "@CIDR@"
      }
      kubelet = {
        config = local.kubelet_config
        flags  = [local.node_labels_flag]
      }
    }
  })
  cluster_facts_given = var.cluster_endpoint != ""

  # Without the cluster's facts the node asks EKS for them, as AL2's bootstrap.sh did, and starts nodeadm itself. At every
  # boot: nodeadm does not enable the kubelet, and the image's own units find no NodeConfig in such user data, so that an
  # instance that reboots would stay NotReady if the script ran at the first boot alone. cloud-init knows the type since 22.1.
  lookup_script = <<-EOT
    #!/bin/bash
    set -euo pipefail
    imds=http://169.254.169.254/latest
    token=$(curl -sf -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' "$imds/api/token")
    export AWS_DEFAULT_REGION=$(curl -sf -H "X-aws-ec2-metadata-token: $token" "$imds/meta-data/placement/region")
    export AWS_RETRY_MODE=adaptive AWS_MAX_ATTEMPTS=20
    facts=$(aws eks describe-cluster --name '${var.cluster_name}' --output text --query \
      'cluster.[endpoint,certificateAuthority.data,kubernetesNetworkConfig.serviceIpv6Cidr||kubernetesNetworkConfig.serviceIpv4Cidr]')
    read -r endpoint ca cidr <<<"$facts"
    cat >/run/node-config.yaml <<'NODECONFIG'
    ${local.node_config}
    NODECONFIG
    sed -i -e "s|@ENDPOINT@|$endpoint|" -e "s|@CA@|$ca|" -e "s|@CIDR@|$cidr|" /run/node-config.yaml
    nodeadm init --config-source file:///run/node-config.yaml
  EOT

  al2023_user_data = <<-EOT
    MIME-Version: 1.0
    Content-Type: multipart/mixed; boundary="BOUNDARY"

    --BOUNDARY
    Content-Type: ${local.cluster_facts_given ? "application/node.eks.aws" : "text/x-shellscript-per-boot; charset=\"us-ascii\""}

    ${local.cluster_facts_given ? local.node_config : local.lookup_script}
    --BOUNDARY--
  EOT

  # Bottlerocket: settings in TOML. A JSON string is a valid TOML basic string, also as a key.
  bottlerocket_tables = {
    "settings.kubernetes" = merge(
      {
        cluster-name        = var.cluster_name
        api-server          = var.cluster_endpoint
        cluster-certificate = var.cluster_ca
      },
      var.max_pods > 0 ? { max-pods = var.max_pods } : {},
    )
    "settings.kubernetes.node-labels" = local.node_labels
    "settings.kubernetes.node-taints" = {
      for key in distinct(local.node_taints[*].key) :
      key => [for taint in local.node_taints : "${taint.value}:${taint.effect}" if taint.key == key]
    }
    "settings.kubernetes.kube-reserved"   = var.kube_reserved
    "settings.kubernetes.system-reserved" = var.system_reserved
    "settings.kubernetes.eviction-hard"   = var.eviction_hard
  }
  bottlerocket_user_data = join("\n", [
    for table, settings in local.bottlerocket_tables : join("", concat(
      ["[${table}]\n"],
      [for key, value in settings : "${jsonencode(key)} = ${jsonencode(value)}\n"],
    )) if length(settings) > 0
  ])

  # AL2: the image's own script. Its arguments are words of a shell; what the rules of the variables let through needs
  # no more than single quotes.
  kubelet_flags = concat(
    [local.node_labels_flag],
    length(local.node_taints) == 0 ? [] : [
      "--register-with-taints=${join(",", [for taint in local.node_taints : "${taint.key}=${taint.value}:${taint.effect}"])}"
    ],
    var.max_pods == 0 ? [] : ["--max-pods=${var.max_pods}"],
    [
      for flag, settings in { kube-reserved = var.kube_reserved, system-reserved = var.system_reserved } :
      "--${flag}=${join(",", [for key, value in settings : "${key}=${value}"])}" if length(settings) > 0
    ],
    length(var.eviction_hard) == 0 ? [] : [
      "--eviction-hard=${join(",", [for key, value in var.eviction_hard : "${key}<${value}"])}"
    ],
  )
  bootstrap_words = concat(
    ["/etc/eks/bootstrap.sh '${var.cluster_name}'"],
    local.cluster_facts_given ? ["--apiserver-endpoint '${var.cluster_endpoint}'", "--b64-cluster-ca '${var.cluster_ca}'"] : [],
    local.cluster_facts_given && var.service_cidr != "" ? ["--dns-cluster-ip '${cidrhost(var.service_cidr, 10)}'"] : [],
    strcontains(var.service_cidr, ":") ? ["--ip-family ipv6", "--service-ipv6-cidr '${var.service_cidr}'"] : [],
    var.max_pods == 0 ? [] : ["--use-max-pods false"],
    compact([var.bootstrap_arguments]),
    ["--kubelet-extra-args '${join(" ", local.kubelet_flags)}'"],
  )
  al2_user_data = "#!/bin/bash\nset -eu\n${join(" \\\n  ", local.bootstrap_words)}\n"

  made_user_data = {
    AL2          = local.al2_user_data
    AL2023       = local.al2023_user_data
    BOTTLEROCKET = local.bottlerocket_user_data
  }
  user_data        = var.user_data != null ? var.user_data : local.made_user_data[var.ami_type]
  user_data_base64 = base64encode(local.user_data)
  user_data_bytes  = length(local.user_data_base64) / 4 * 3 - length(regexall("=", local.user_data_base64))
}
