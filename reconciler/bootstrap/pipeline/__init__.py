"""What pipelines call: the stages of `reconciler ci`, and the root modules of a checkout."""
