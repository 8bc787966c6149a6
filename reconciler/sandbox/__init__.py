"""AWS and Kubernetes on loopback: what `reconciler sandbox`, the demo and the tests run against."""
