"""Runs INSIDE a toolchain's interpreter (Python 3.9 or newer), with the standard library and triton only,
never irdiff.

`__main__` loads this folder as the package `irdiff_worker`, so that nothing else of irdiff can be imported by
accident.
"""
