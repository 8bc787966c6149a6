"""Answers to "why is this pod pending?" and "why is this node still here?".

Everything is tried on the what-if cluster as it will be once the plan is carried out: a change is
only suggested if, with it, a new node of the fleet takes the pod by every filter. `pods` and
`nodes` answer, `repairs` finds changes, `trial` tries them, `answers` has the results.
"""
