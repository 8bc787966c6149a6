"""The what-if cluster without some nodes: whether and where their pods fit elsewhere."""
