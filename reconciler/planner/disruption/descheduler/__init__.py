"""The descheduler: policies yield pods, one evictor says which of them go."""
