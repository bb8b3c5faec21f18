"""The pass of LLVM's optimizer behind a change, for who asks for it (`irdiff explain`).

LLVM prints the IR after each of its passes, about 115 times: too much for each case of a comparison. An edit
survives unless LLVM makes the same without it. So where a lowering differs in nothing that matters, and LLVM
makes the same of both on the way, the pass behind the last equal pair of states is the cause. Attributes that
LLVM infers for functions and arguments (`nofree`) are no difference there, unless they are all there is.
"""

from __future__ import annotations

import re
from dataclasses import replace

from irdiff.attribute import first_divergent_pass
from irdiff.attribute.attribution import Attribution, CaseToReplay
from irdiff.attribute.first_divergent_pass import Divergence
from irdiff.attribute.pass_states import State
from irdiff.attribute.replayer import Dump, Replayer
from irdiff.compare import abstraction
from irdiff.compare.edits import Edit
from irdiff.ir import opcode_classes
from irdiff.model import Component
from irdiff.parallel import of_both
from irdiff.stages import Stage

_PRINTS_FAST = (3, 7)
"""Releases before this one print to an unbuffered stream: it takes minutes."""
_INFERRED = re.compile(r"\b(?:nofree|readnone|readonly|writeonly|nocapture|noundef)\b ?|captures\(none\) ?")
_QUIET = frozenset(
    sign + name for sign in "+-" for name in (*opcode_classes.UNTELLING, opcode_classes.OTHERS, "ttg.warp_id")
)


def with_llvm_pass(found: Attribution, subject: CaseToReplay, replayer: Replayer) -> Attribution:
    """The attribution with LLVM's pass; the same one where LLVM's optimizer is not the origin."""
    origin, step = found.origin, found.step
    is_llvm = origin.stage == Stage.LLIR and Component.LLVM_CODEGEN in origin.charged
    if origin.pass_name is not None or not is_llvm:
        return found
    divergence = _divergence(subject, replayer)
    if step is None:
        if divergence is not None:
            origin = replace(origin, pass_name=divergence.name, masked=divergence.masked)
        return replace(found, origin=origin)
    if divergence is None:
        return replace(found, origin=replace(origin, pass_name=step.name), edit=step.edit("mlir"))
    healed = replace(
        origin,
        pass_name=divergence.name,
        masked=tuple(dict.fromkeys((*origin.masked, step.name, *divergence.masked))),
        charged=tuple(row for row in origin.charged if row is not Component.LLVM_LOWERING),
        note=f"LLVM's optimizer makes the same of what {step.name} lowers differently",
    )
    return replace(found, origin=healed, step=None)


def _divergence(subject: CaseToReplay, replayer: Replayer) -> Divergence | None:
    if not all(_prints_fast(side.toolchain.version) for side in subject.sides):
        return None
    replayed = of_both(lambda side: replayer.run(subject.replay(Stage.LLIR, side, dump=Dump.LLVM)))
    base, head = (side.states for side in replayed)
    found = first_divergent_pass.find_divergence(base, head, _same_but_for_inferred)
    return found or first_divergent_pass.find_divergence(base, head, _same)


def _prints_fast(version: str) -> bool:
    found = re.match(r"(\d+)\.(\d+)", version)
    return found is not None and (int(found[1]), int(found[2])) >= _PRINTS_FAST


def is_quiet(edit: Edit | None) -> bool:
    """Returns True if two lowerings differ only in address arithmetic and the like."""
    return edit is not None and set(abstraction.signature(abstraction.abstract(edit))) <= _QUIET


def _same(base: State, head: State) -> bool:
    return base.digest == head.digest


def _same_but_for_inferred(base: State, head: State) -> bool:
    return _same(base, head) or _INFERRED.sub("", base.text) == _INFERRED.sub("", head.text)
