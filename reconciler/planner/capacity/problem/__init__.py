"""The purchase stated as numbers, and what every search of it uses.

`items` makes items of pod classes and `problem` holds them with the offers of nodes; `node_rules`
are rules between the pods of one node, `dominance` leaves out offers that another one beats,
`effort` counts the steps of a search, and `purchase` is what a purchase returns.
"""
