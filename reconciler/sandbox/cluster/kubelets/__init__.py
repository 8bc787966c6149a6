"""The kubelets: what they report about their nodes and the pods on them."""
