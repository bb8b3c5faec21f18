"""Drops from two launch texts of one case what is no difference between the launches.

- An option that both compilers resolve to one value: `num_warps=4` changes nothing if 4 is the default.
- An option that a user sets for a whole side: its effect is in the code and in the launcher's arguments, and
both are compared.
- A field of a tensor descriptor that has its default, if the other side's release has no such field.
- The number of a storage among those of its kind, if both launches get storages of that kind and the two
programs make different numbers of them: an added tensor shifts the numbers of later ones. The order of a
launch's storages is compared anyway.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from irdiff.model import Artifact, Launch, Pair, Toolchain
from irdiff.stages import Stage
from irdiff.store import Store

_NUMBER = re.compile(
    r", number \d+ of (?P<total>\d+) (?P<kind>[^\[,\n]*(?:\[[^\]]*\])?(?: before the entry)?)"
)
_FIELD = re.compile(r"^ +(?P<name>argument [\d.]+ field \w+): ")
_DEFAULT = ", its default"


def options_of_sides(toolchains: Iterable[Toolchain]) -> frozenset[str]:
    return frozenset(name for toolchain in toolchains for name in toolchain.settings)


def resolved(pair: Pair, store: Store, settings: Collection[str] = ()) -> Pair:
    """settings: from `options_of_sides`."""
    base, head = pair.base, pair.head
    if not isinstance(base, Launch) or not isinstance(head, Launch):
        return pair
    return replace(pair, base=beside(base, head, store, settings), head=beside(head, base, store, settings))


def beside(launch: Launch, other: Launch, store: Store, settings: Collection[str]) -> Launch:
    """Returns the launch with the text that is compared with the other launch, which may be reduced
    already.
    """
    if launch.launched == other.launched:
        return launch
    ours, theirs = _lines(launch, store), _lines(other, store)
    if ours is None or theirs is None:
        return launch
    alike = (name for name, value in launch.options.items() if other.options.get(name) == value)
    dropped = tuple(f"  option {name}: " for name in (*alike, *settings))
    own, others = _totals(ours), _totals(theirs)
    kinds = {kind for kind in own.keys() & others.keys() if own[kind] != others[kind]}
    return _with(launch, _kept(ours, dropped, _fields(theirs), kinds), store)


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
