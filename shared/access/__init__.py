"""Who may see what: principals, the one rule, compiled and kept scopes."""
