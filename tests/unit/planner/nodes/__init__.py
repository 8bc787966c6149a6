"""What each fleet is, has, and will launch."""
