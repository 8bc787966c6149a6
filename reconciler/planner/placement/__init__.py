"""The what-if cluster: what fits where, given all reservations.

There is one primitive for every policy: `Simulation` has the existing and the imagined nodes,
answers how many pods of a class each of them can still take, and makes and releases reservations.
The rules are kube-scheduler's, one file per filter under `filters/`; there is no second
implementation.
"""
