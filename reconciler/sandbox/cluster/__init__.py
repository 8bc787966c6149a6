"""A simulated Kubernetes cluster: API over HTTP, controllers, kubelets, scheduler.

True to the API server where clients can see it; what runs in pods is only imagined.
"""
