"""Fast ways to pack all items.

`exact` tries everything where pods are few, `even_filling` fills equal nodes, `first_fit` and
`node_mix` pack in bulk, and `right_size` gives every node of a packing the cheapest offer that
holds its pods.
"""
