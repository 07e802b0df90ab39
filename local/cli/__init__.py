"""The command line `ki`: one module per command."""
