"""Column generation: what one node may hold is a pattern, and a linear program combines patterns.

`columns` runs the search: `master` holds the program over known `patterns`, `pricing` and
`neighbour_patterns` find new ones with `knapsack` and `knapsack_search`, and `rounding` makes whole
nodes of the solution. `bound_proof` turns prices of the program into a proven lower bound. `shapes`
and `pattern_dealing` do the same for thousands of classes that have few shapes.
"""
