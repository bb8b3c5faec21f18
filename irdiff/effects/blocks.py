"""Blocks in an order that follows from the edges alone. Pure.

Blocks are numbered depth first from the entry, the target where the condition is true first, so neither the
order in a text nor labels count. Where both sides take a branch by opposite conditions, head's is turned
around. A block that only jumps is left out, and a block is one with its only successor that nothing else
enters. Each edge from a branch to a block that others enter too has a block of its own: one side may compute
there what the other computes before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from irdiff.ir.body import BRANCH, JUMP
from irdiff.ir.program import BlockNode, CodeBlock, Function, Graph, ReadError

EXEC = "exec"
"""The register of the lanes that act, which each block reads."""
_NEAR = 6
"""Over how many edges two blocks have to look alike."""


def graphs(base: Function, head: Function) -> tuple[Graph, Graph]:
    """Raises ReadError for a jump to a label that is not there."""
    ours, theirs = _normal(base), _normal(head)
    return _graph(ours, frozenset()), _graph(theirs, _turned(ours, theirs))


_Blocks = dict[str, CodeBlock]
"""By label, the entry first."""


def _normal(function: Function) -> _Blocks:
    blocks = {block.label: block for block in function.blocks}
    entry = function.blocks[0].label
    blocks = _joined(_without_jumps(blocks, entry), entry)
    reached = dict[str, CodeBlock]()
    waiting = [entry]
    while waiting:
        label = waiting.pop()
        if label not in blocks:
            raise ReadError(f"a jump to {label}, which is not there")
        if label not in reached:
            reached[label] = blocks[label]
            waiting += blocks[label].targets
    entered = Counter(target for block in reached.values() for target in block.targets)
    for label, block in [*reached.items()]:
        if len(block.targets) > 1:
            targets = [
                f"{label} to {n}" if entered[each] > 1 else each for n, each in enumerate(block.targets)
            ]
            for new, old in zip(targets, block.targets, strict=True):
                if new != old:
                    reached[new] = CodeBlock(new, (), JUMP, None, (old,))
            reached[label] = block._replace(targets=tuple(targets))
    return reached


def _graph(blocks: _Blocks, turned: Collection[str]) -> Graph:
    targets = {
        label: block.targets[::-1] if label in turned else block.targets for label, block in blocks.items()
    }
    order: dict[str, int] = {}
    waiting = [next(iter(blocks))]
    while waiting:
        label = waiting.pop()
        if label not in order:
            order[label] = len(order)
            waiting += targets[label][::-1]
    edges = [tuple(order[each] for each in targets[label]) for label in order]
    live = _live([blocks[label] for label in order], edges)
    sources: list[list[int]] = [[] for _ in edges]
    for source, own in enumerate(edges):
        for target in own:
            sources[target].append(source)
    return tuple(
        BlockNode(
            block=blocks[label],
            is_turned=label in turned,
            targets=edges[n],
            sources=tuple(sources[n]),
            live=tuple(sorted({*live[n], EXEC})),
        )
        for label, n in order.items()
    )


def _turned(base: _Blocks, head: _Blocks) -> set[str]:
    """Head's branches whose two targets look like base's, the other way around."""
    looks = _looks(base), _looks(head)
    place: dict[str, str] = {}
    turned = set[str]()
    waiting = [(next(iter(base)), next(iter(head)))]
    while waiting:
        one, other = waiting.pop()
        if one in place:
            continue
        place[one] = other
        ours, theirs = base[one].targets, head[other].targets
        if base[one].exit == head[other].exit == BRANCH:
            alike = [
                sum(
                    2 * (place.get(a) == b)
                    + sum(x == y for x, y in zip(looks[0][a], looks[1][b], strict=True))
                    for a, b in zip(ours, order, strict=True)
                )
                for order in (theirs, theirs[::-1])
            ]
            if alike[1] > alike[0]:
                turned.add(other)
                theirs = theirs[::-1]
        waiting += zip(ours, theirs, strict=False)
    return turned


def _looks(blocks: _Blocks) -> dict[str, tuple[int, ...]]:
    """Returns hashes of each block: of its surroundings, the farthest first, its effects and operations."""
    sources: dict[str, list[str]] = {label: [] for label in blocks}
    for label, block in blocks.items():
        for each in block.targets:
            sources[each].append(label)
    now = {label: hash((block.exit, len(block.targets))) for label, block in blocks.items()}
    looks: dict[str, tuple[int, ...]] = {
        label: (
            hash(tuple(effect[:2] for each in block.instructions if (effect := each.operation.effect))),
            hash(tuple(sorted(each.operation.word for each in block.instructions))),
        )
        for label, block in blocks.items()
    }
    for _ in range(_NEAR):
        now = {
            label: hash(
                (look, *sorted(now[each] for each in blocks[label].targets), 0,
                 *sorted(now[each] for each in sources[label]))
            )
            for label, look in now.items()
        }  # fmt: skip
        looks = {label: (now[label], *rows) for label, rows in looks.items()}
    return looks


def same_shape(base: Graph, head: Graph) -> bool:
    return [(node.targets, node.block.exit) for node in base] == [
        (node.targets, node.block.exit) for node in head
    ]


def _without_jumps(blocks: dict[str, CodeBlock], entry: str) -> dict[str, CodeBlock]:
    def end(label: str) -> str:
        seen = {label}
        while (block := blocks.get(label)) and not block.instructions and block.exit == JUMP:
            label = block.targets[0]
            if label in seen:  # an endless loop
                return label
            seen.add(label)
        return label

    leads_to = {label: end(label) for label in blocks}
    return {
        label: block._replace(targets=tuple(leads_to.get(each, each) for each in block.targets))
        for label, block in blocks.items()
        if leads_to[label] == label or label == entry
    }


def _joined(blocks: dict[str, CodeBlock], entry: str) -> dict[str, CodeBlock]:
    entered = Counter(target for block in blocks.values() for target in block.targets)
    entered[entry] += 1
    inside = {
        block.targets[0]
        for label, block in blocks.items()
        if block.exit == JUMP and entered[block.targets[0]] == 1 and block.targets[0] != label
    }
    joined: dict[str, CodeBlock] = {}
    for label, first in blocks.items():
        if label in inside:
            continue
        parts, last = list(first.instructions), first
        while last.exit == JUMP and last.targets[0] in inside and last.targets[0] in blocks:
            last = blocks[last.targets[0]]
            parts += last.instructions
        joined[label] = last._replace(label=label, instructions=tuple(parts))
    return joined


def _live(blocks: Sequence[CodeBlock], targets: Sequence[tuple[int, ...]]) -> list[set[str]]:
    """By block. What is written in some lanes only, or under a predicate, may be read as it was."""
    live: list[set[str]] = []
    written: list[set[str]] = []
    for block in blocks:
        own, gone = set[str](), set[str]()
        for each in block.instructions:
            operation, results, reads, *_ = each
            for name in (*reads, *results) if operation.is_guarded else reads:
                if name not in gone:
                    own.add(name)
            if not operation.is_guarded and not operation.masked:
                gone.update(results)
        if isinstance(block.condition, str) and block.condition not in gone:
            own.add(block.condition)
        live.append(own)
        written.append(gone)
    changed = True
    while changed:
        changed = False
        for number in range(len(blocks) - 1, -1, -1):
            for target in targets[number]:
                more = live[target] - written[number] - live[number]
                live[number] |= more
                changed = changed or bool(more)
    return live
