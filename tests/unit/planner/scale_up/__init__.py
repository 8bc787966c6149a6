"""Scale-up: groups, spreads, limits, priorities, and what is bought for pods."""
