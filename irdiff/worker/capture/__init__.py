"""Runs workloads and programs without a GPU, and captures what they launch."""
