"""Seeded mutations of real artifacts: meaningful ones must be seen, cosmetic ones must not.

python -m tests.programs.mutation --full          prints a table by kind
"""
