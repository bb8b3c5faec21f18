"""Runs the stages of a toolchain's compiler."""
