"""What happens in clusters, on the real control plane; one idea per file."""
