"""Kernels for training."""
