"""Language models: one protocol, the real ones, and the prompts they are asked with."""
