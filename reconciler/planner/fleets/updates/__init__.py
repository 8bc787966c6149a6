"""Rolling updates and expiry: which nodes are outdated, how a version is proven, what halts it."""
