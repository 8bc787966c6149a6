"""The controllers of kube-controller-manager that manifests and evictions need."""
