"""The stage fetch under the state machine."""
