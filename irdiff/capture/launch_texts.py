"""What two launches of one case say of their options, once the compiler has resolved them on both sides.

The text of a launch has what the program typed. `num_warps=4` is no other launch where 4 is the default: an
option that both compilers resolve to one value leaves both texts.
"""

from __future__ import annotations

from dataclasses import replace

from irdiff.model import Artifact, Launch, Pair
from irdiff.stages import Stage
from irdiff.store import Store


def resolved(pair: Pair, store: Store) -> Pair:
    base, head = pair.base, pair.head
    if not isinstance(base, Launch) or not isinstance(head, Launch) or base.launched == head.launched:
        return pair
    same = [f"  option {name}: " for name, value in base.options.items() if head.options.get(name) == value]
    return replace(pair, base=_without(base, tuple(same), store), head=_without(head, tuple(same), store))


def _without(launch: Launch, beginnings: tuple[str, ...], store: Store) -> Launch:
    text = store.get(launch.launched.digest)
    if text is None:
        return launch
    lines = text.decode().splitlines(keepends=True)
    kept = "".join(line for line in lines if not line.startswith(beginnings)).encode()
    digest = store.put(kept)
    return replace(launch, launched=Artifact(stage=Stage.LAUNCH, digest=digest, size_bytes=len(kept)))
