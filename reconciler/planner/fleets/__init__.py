"""What each fleet is, has, and will launch: the config, EC2 and the cluster joined."""
