"""What can be read from a text, a name and a file's own properties without a model."""
