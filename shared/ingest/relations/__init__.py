"""What a version says of others, what it is called by them, and which of them it is a redline of."""
