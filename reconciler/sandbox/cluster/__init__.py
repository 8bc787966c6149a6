"""A simulated Kubernetes cluster: API over HTTP, controllers, kubelets, scheduler.

It behaves like the API server where clients can see it; what runs in pods is only simulated.
"""
