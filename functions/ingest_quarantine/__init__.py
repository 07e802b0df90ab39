"""A failure that its stage could not write down."""
