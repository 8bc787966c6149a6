"""The controllers of kube-controller-manager that manifests and evictions rely on."""
