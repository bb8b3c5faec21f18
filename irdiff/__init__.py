"""irdiff: which kernels does a Triton change touch, why, and how much does it matter."""

__version__ = "0.1.0"
