"""What is wrong with the running program: causes of trouble, and the rules that find them."""
