"""Pure planning: (Snapshot, PlannerSettings) -> Plan. No I/O, no clock, no unseeded randomness."""
