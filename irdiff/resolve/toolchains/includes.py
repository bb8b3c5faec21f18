"""Which source files include which headers, read from their text."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

HEADERS = (".h", ".hpp")
UNITS = (".cpp", ".cc", ".cxx")
"""What is compiled on its own."""
_INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)


def includers(texts: Mapping[str, str]) -> dict[str, set[str]]:
    """By header the files that include it themselves. Where a name may mean two headers, both are taken."""
    headers: dict[str, list[str]] = defaultdict(list)
    for path in texts:
        if path.endswith(HEADERS):
            headers[path.rpartition("/")[2]].append(path)
    found: dict[str, set[str]] = defaultdict(set)
    for path, text in texts.items():
        for name in _INCLUDE.findall(text):
            for header in headers.get(name.rpartition("/")[2], ()):
                if header == name or header.endswith(f"/{name.removeprefix('./')}") or "../" in name:
                    found[header].add(path)
    return found


def units_with(edited: Iterable[str], texts: Mapping[str, str]) -> list[str]:
    """The units of compilation among `texts` that are one of these files, or include one, however deep."""
    direct = includers(texts)
    pending = [path for path in edited if path in texts]
    seen = set(pending)
    while pending:
        users = direct.get(pending.pop(), set()) - seen
        seen |= users
        pending += users
    return sorted(path for path in seen if path.endswith(UNITS))
