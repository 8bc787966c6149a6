"""The methods: one file per reason to disrupt nodes; `engine` has the order in which they run."""
