"""Speed and scale, measured in pairs."""
