"""Lower bounds on what serving the items costs.

`fair_prices` is quick and holds for every problem; `assignment` is closer and for small ones. `lp`
solves their linear programs, and those of other packages.
"""
