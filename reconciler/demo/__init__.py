"""`reconciler demo`: the main job end to end in the sandbox, told as it happens.

Everything in it is the program as users run it: processes, real git, real Terraform, boto3 and the
Kubernetes client over HTTP. A step that fails ends the demo with a non-zero exit code.
"""
