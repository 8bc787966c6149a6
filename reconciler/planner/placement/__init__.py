"""The what-if cluster: what fits where, given all reservations.

One primitive for every policy: `Simulation` knows the nodes there are and those imagined, answers
how many pods of a class each could still take, and takes and gives back reservations. The rules
are kube-scheduler's, one file per filter under `filters/`; there is no second implementation.
"""
