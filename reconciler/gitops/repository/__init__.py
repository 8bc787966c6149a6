"""The config repository: what is proposed to it, what is followed, how far each config has come."""
