"""The descheduler: policies propose pods, and one evictor decides which of them are evicted."""
