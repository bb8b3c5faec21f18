"""Counts what one launch executes, from its machine code and its launch arguments."""
