"""What the stages of a pipeline are built from."""
