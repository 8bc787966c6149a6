"""The operations of EC2 Fleets and Auto Scaling groups that the sandbox answers itself."""
