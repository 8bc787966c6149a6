"""The external forms of the model's values: JSON of Kubernetes, of EC2, of plans.

Decoders read untrusted data and never raise for one bad object, which is skipped and reported as
`Ignored(code="unreadable")`. No decoder opens a file or a connection.
"""
