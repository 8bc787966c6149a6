"""What commands show to people, made from values."""
