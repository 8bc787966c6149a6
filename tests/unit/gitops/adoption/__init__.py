"""Unit tests of adopting what exists."""
