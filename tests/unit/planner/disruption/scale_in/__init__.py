"""Scale-in: nodes with pods, drains under way, instances and nodes that are broken."""
