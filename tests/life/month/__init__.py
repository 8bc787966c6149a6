"""A month of a mixed workload in virtual time, against what a clairvoyant would have needed."""
