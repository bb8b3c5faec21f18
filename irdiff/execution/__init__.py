"""The engine that executes machine code for many threads at once, with what is not known left unknown.

It is the same for all backends; `backends/*/execution` adds what each instruction does.
"""
