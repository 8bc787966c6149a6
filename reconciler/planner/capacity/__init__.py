"""Which new nodes to buy for pods that found no room, and a proof of how little they could cost.

One purchase goes through the package in this order:

1. `buy` takes pod classes and offers; `problem` states them as numbers.
2. `search_cache` answers a problem that was searched before; `search` works on a new one.
3. `search` tries `packings`, fast ways to fill nodes, and compares them with `bounds`, which no
   packing can cost less than. Where money may be left to save and the problem is small enough,
   `node_sets` (few pods) and `patterns` (column generation) look for a cheaper packing.
4. `expander` replaces the search where a sector's expander is not `cost`.
5. `balancing` spreads the new nodes over fleets that are alike.
6. `buy` puts the nodes and their pods into the what-if cluster, which checks every rule;
   `refused_by_spreads` takes out again what spreads refuse where a limit left out other pods.
7. `one_by_one` buys single nodes for the pods that are left, and `bundles` one node for pods that
   must share it.
8. `buy` makes the purchase once more, the higher priorities first, where they would be left while
   lower ones are served; `follow_up` says what a purchase leaves to the next one.
9. `opened_room` uses room on older nodes that a spread over zones allows once the new nodes count.

Money is in billionths of a dollar per hour.
"""
