"""The index brought up to date with the database, on a schedule."""
