"""What EC2 announces about instances: notices, instance metadata, the queue."""
