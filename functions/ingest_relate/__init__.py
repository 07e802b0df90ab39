"""The stage relate under the state machine."""
