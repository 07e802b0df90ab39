"""The stage extract_metadata under the state machine."""
