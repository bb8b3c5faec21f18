"""Executes the integer part of SASS for all threads of some programs at once."""
