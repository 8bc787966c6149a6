"""Lower bounds on the cost of serving the items.

`fair_prices` is quick and works for every problem; `assignment` is tighter, for small problems.
`lp` solves their linear programs, and those of other packages.
"""
