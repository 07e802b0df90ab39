"""The stage convert under the state machine."""
