"""Runs INSIDE a toolchain's interpreter: standard library and triton only, never irdiff.

`__main__` loads this folder as the package `irdiff_worker`, so that nothing else of irdiff can be
imported by accident. Python 3.9 is the oldest interpreter that it must run on. At the top are what workloads
import (`corpus_api`), what irdiff and the worker say to each other (`protocol`) and what all folders use.
"""
