"""Everything that touches moto, which is untyped: its state, its HTTP application, its gaps."""
