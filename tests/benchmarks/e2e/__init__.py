"""The reconciler between the sandbox's EC2 and a real control plane, at the size of the promise."""
