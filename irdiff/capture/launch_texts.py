"""Drops from two launch texts of one case what is no difference between the launches.

- An option that both compilers resolve to one value: `num_warps=4` launches nothing else where 4 is the
  default.
- A field of a tensor descriptor that has its default, where the other side's release has no such field.
- The number of a storage among those of its kind, where the two programs make different numbers of that
  kind: an added tensor gives later ones other numbers. The order of a launch's storages is compared all the
  same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from irdiff.model import Artifact, Launch, Pair
from irdiff.stages import Stage
from irdiff.store import Store

_NUMBER = re.compile(
    r", number \d+ of (?P<total>\d+) (?P<kind>[^\[,\n]*(?:\[[^\]]*\])?(?: before the entry)?)"
)
_FIELD = re.compile(r"^ +(?P<name>argument [\d.]+ field \w+): ")
_DEFAULT = ", its default"


def resolved(pair: Pair, store: Store) -> Pair:
    base, head = pair.base, pair.head
    if not isinstance(base, Launch) or not isinstance(head, Launch) or base.launched == head.launched:
        return pair
    ours, theirs = _lines(base, store), _lines(head, store)
    if ours is None or theirs is None:
        return pair
    same = tuple(
        f"  option {name}: " for name, value in base.options.items() if head.options.get(name) == value
    )
    totals = _totals(ours), _totals(theirs)
    other = {
        kind for kind in totals[0].keys() | totals[1].keys() if totals[0].get(kind) != totals[1].get(kind)
    }
    return replace(
        pair,
        base=_with(base, _kept(ours, same, _fields(theirs), other), store),
        head=_with(head, _kept(theirs, same, _fields(ours), other), store),
    )


def _lines(launch: Launch, store: Store) -> list[str] | None:
    text = store.get(launch.launched.digest)
    return None if text is None else text.decode().splitlines(keepends=True)


def _totals(lines: list[str]) -> Mapping[str, str]:
    return {match["kind"]: match["total"] for line in lines for match in _NUMBER.finditer(line)}


def _fields(lines: list[str]) -> frozenset[str]:
    matches = (_FIELD.match(line) for line in lines)
    return frozenset(match["name"] for match in matches if match)


def _kept(
    lines: list[str], options: tuple[str, ...], fields: frozenset[str], kinds: set[str]
) -> Iterator[str]:
    """fields: those of the other side. kinds: of storages whose numbers are dropped."""
    for line in lines:
        field = _FIELD.match(line)
        is_unknown = field and field["name"] not in fields and line.rstrip().endswith(_DEFAULT)
        if not is_unknown and not line.startswith(options):
            yield _NUMBER.sub(lambda match: "" if match["kind"] in kinds else match[0], line)


def _with(launch: Launch, lines: Iterator[str], store: Store) -> Launch:
    kept = "".join(lines).encode()
    digest = store.put(kept)
    return replace(launch, launched=Artifact(stage=Stage.LAUNCH, digest=digest, size_bytes=len(kept)))
