"""What limits all disruptions together: budgets, blast radius, minima, the safety stop."""
