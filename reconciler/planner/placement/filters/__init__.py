"""kube-scheduler's filters, one file each; semantics as of Kubernetes 1.3x.

Static filters look at a pod's constraints and a node kind and give an unplaceable code or "".
Counting filters (resources, host ports, volume limits) are columns of the resource matrix.
Dynamic filters keep counters per topology domain and say how many more pods a row may take.
"""
