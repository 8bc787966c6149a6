"""The cheapest capacity for what does not fit: which nodes to buy, and how far from the least.

`problem` states it as numbers, `packing` and `columns` solve it, `bound` proves a lower bound,
`purchase` carries the solution into the what-if cluster. Money is in billionths of a dollar.
"""
