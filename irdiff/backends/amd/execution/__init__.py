"""Executes the integer part of AMD's machine code, which its assembly spells: waves of 64 lanes under EXEC.

No AMD GPU has confirmed what is counted so.
"""
