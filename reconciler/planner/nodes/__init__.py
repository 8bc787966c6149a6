"""What is happening to a node, whatever fleet it is of: it starts, drains, is taken back, ends."""
