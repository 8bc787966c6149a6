"""What EC2 tells about instances: notices, announcements, instance metadata, the queue."""
