"""The invented firm that the demo and the tests search: its files, its people and its walls."""
