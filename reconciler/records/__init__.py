"""Every form that a value of the model has outside: JSON of Kubernetes, of EC2, of plans.

Decoders take what others wrote and never raise for one bad object: it is skipped and reported as
`Ignored(code="unreadable")`. Nothing here opens a file or a connection.
"""
