"""The index: what its rows look like, how they get there, and the only client that talks to the engine."""
