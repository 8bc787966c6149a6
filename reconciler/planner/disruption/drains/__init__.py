"""What is written on nodes: drains, their progress, timers and soft taints."""
