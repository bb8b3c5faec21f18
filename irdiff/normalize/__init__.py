"""Canonical text of every IR: the only judge of `equivalent`, and what every diff shows.

    canonicalize(ir, text) -> Canonical      the full canonical form
    equivalent(ir, base, head) -> bool       the same answer, cheap paths first

Pure `str -> str`; one module an IR. See `docs` in each module for its rules, each with its reason.
"""
