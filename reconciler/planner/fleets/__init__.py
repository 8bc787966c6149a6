"""What each fleet is, has and will launch: config, EC2 and cluster joined."""
