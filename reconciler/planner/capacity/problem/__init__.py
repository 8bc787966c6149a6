"""The purchase stated as numbers, and what every search of it uses.

`offer_table` has the offers as the filters see them; `dealing` deals pods out to zones, with
`groups_near` for pods that must be near others and `limited_room` for fleets near their limits.
`items` makes items of that and `problem` holds them with the offers; `node_rules` are rules between
the pods of one node, `dominance` leaves out offers that another one beats,
`effort` counts the steps of a search, and `purchase` is what a purchase returns.
"""
