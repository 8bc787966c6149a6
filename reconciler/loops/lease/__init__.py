"""The Lease that all replicas share: which of them acts, and what is saved on it between cycles."""
