"""Node autoscaler for EKS on EC2 Fleets."""

__version__ = "0.1.0"
