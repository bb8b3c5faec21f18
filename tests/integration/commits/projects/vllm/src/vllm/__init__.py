"""Kernels for inference."""
