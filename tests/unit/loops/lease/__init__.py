"""Which replica acts."""
