"""The stage index under the state machine."""
