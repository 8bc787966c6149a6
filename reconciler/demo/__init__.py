"""`reconciler demo`: the main task end to end in the sandbox, shown while it happens.

It runs the program as users do: processes, real git, real Terraform, boto3 and the Kubernetes
client over HTTP. A step that fails ends the demo with a non-zero exit code.
"""
