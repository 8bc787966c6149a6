"""Pure functions: no input, output or clock."""
