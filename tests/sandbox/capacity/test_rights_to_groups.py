"""The policy of Auto Scaling groups on an AWS that enforces it: exactly enough."""
