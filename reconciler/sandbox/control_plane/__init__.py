"""A real Kubernetes control plane on loopback: its programs, its certificates, its processes.

etcd, kube-apiserver, kube-controller-manager and kube-scheduler from one Go program of ours
(`programs/`), and KWOK in the place of kubelets. Linux only.
"""
