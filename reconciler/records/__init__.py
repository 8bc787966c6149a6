"""Every form that a value of the model has outside: JSON of Kubernetes, of EC2, of plans.

Decoders take what others wrote and never raise for one bad object: it is skipped and reported as
`Ignored(code="unreadable")`. No decoder opens a file or a connection. Beside them stands how a file
is put in place whole (`whole_file.py`) and a folder is kept for one process (`private_folder.py`).
"""
