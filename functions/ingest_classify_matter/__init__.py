"""The stage classify_matter under the state machine."""
