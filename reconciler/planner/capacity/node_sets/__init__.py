"""The cheapest set of nodes that holds all pods of a small purchase.

`search` goes through the sets that `listing` finds cheaper than a known packing: `greedy` tries to
fill a set, and `program` tries to prove that it cannot hold all pods.
"""
