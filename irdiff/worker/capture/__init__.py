"""Runs workloads and programs where no GPU is, and notes what they launch."""
