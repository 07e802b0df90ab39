"""Where files come from: what a source offers, how it is configured, and the sources that exist."""
