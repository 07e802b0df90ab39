"""The stage extract_decisions under the state machine."""
