r"""Canonical form of a text IR that irdiff does not know, from a third-party backend.

Rules
- `op a, b   \n` → `op a, b\n`, blank lines dropped: white space at a line's end separates nothing in
  any assembly or IR. Nothing else is known to be meaningless here, so nothing else is done: source
  paths in such a text show as changes.
"""

from __future__ import annotations

from irdiff.normalize.canonical import Rows, unrecognized


def rows(ir: str, text: str) -> Rows:
    body = [line.rstrip() for line in text.split("\n")]
    if text and not any(body):
        raise unrecognized(ir, "any visible character")
    return Rows(body=body, tail=[], header={})
