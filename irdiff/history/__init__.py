"""Keeps facts and timings of every kernel in every version in one file, and shows them as lines."""
