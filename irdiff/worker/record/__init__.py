"""Writes what a program or a test launches as workloads."""
