"""The pass of LLVM's optimizer behind a change, for who asks for it (`irdiff explain`).

LLVM prints the IR after each of its passes, about 115 times: too much for each case of a comparison. An edit
survives unless LLVM makes the same without it. So where a lowering differs in nothing that matters, and LLVM
makes the same of both on the way, the pass behind the last equal pair of states is the cause. Attributes that
LLVM infers for functions and arguments (`nofree`) are no difference there, unless they are all there is.
"""

from __future__ import annotations

import re
from dataclasses import replace

from irdiff.attribute import responsible_pass, syntax_drift
from irdiff.attribute.attribution import Attribution, CaseToReplay
from irdiff.attribute.pass_states import State
from irdiff.attribute.replayer import Dump, Replayer
from irdiff.compare import abstraction, edits, instructions
from irdiff.errors import NormalizeError
from irdiff.model import Component
from irdiff.parallel import of_both
from irdiff.stages import Stage
from irdiff.store import Store

_PRINTS_FAST = (3, 7)
"""Releases before this one print to an unbuffered stream: it takes minutes."""
_INFERRED = re.compile(r"\b(?:nofree|readnone|readonly|writeonly|nocapture|noundef)\b ?|captures\(none\) ?")
_QUIET = frozenset(
    sign + name for sign in "+-" for name in (*instructions.UNTELLING, instructions.OTHERS, "ttg.warp_id")
)


def with_llvm_pass(
    found: Attribution, subject: CaseToReplay, replayer: Replayer, store: Store
) -> Attribution:
    """The attribution with LLVM's pass; the same one where LLVM's optimizer is not the origin."""
    origin = found.origin
    is_llvm = origin.pass_name is None and Component.LLVM_CODEGEN in origin.charged
    if origin.stage != Stage.LLIR or not (is_llvm or _is_quiet(found, store)):
        return found
    if not all(_prints_fast(side.toolchain.version) for side in subject.sides):
        return found
    replayed = of_both(lambda side: replayer.run(subject.replay(Stage.LLIR, side, dump=Dump.LLVM)))
    base, head = (side.states for side in replayed)
    culprit = responsible_pass.find_culprit(base, head, _same_but_for_inferred)
    culprit = culprit or responsible_pass.find_culprit(base, head, _same)
    if culprit is None:
        return found
    if is_llvm:
        return replace(found, origin=replace(origin, pass_name=culprit.name, masked=culprit.masked))
    lowering = str(origin.pass_name)
    masked = tuple(dict.fromkeys((*origin.masked, lowering, *culprit.masked)))
    charged = {Component.LLVM_CODEGEN, *origin.charged} - {Component.LLVM_LOWERING}
    told = replace(
        origin,
        pass_name=culprit.name,
        masked=masked,
        charged=tuple(sorted(charged, key=list(Component).index)),
        note=f"LLVM's optimizer makes the same of what {lowering} lowers differently",
    )
    return replace(found, origin=told, step=None, edit=None)


def _prints_fast(version: str) -> bool:
    found = re.match(r"(\d+)\.(\d+)", version)
    return found is not None and (int(found[1]), int(found[2])) >= _PRINTS_FAST


def _is_quiet(found: Attribution, store: Store) -> bool:
    """Whether the lowerings differ in address arithmetic and the like alone."""
    texts = [store.get(digest) for digest in (found.edit.base, found.edit.head)] if found.edit else []
    if found.edit is None or found.edit.ir != "mlir" or None in texts:
        return False
    try:
        base, head = (list(syntax_drift.canonical("mlir", (text or b"").decode())) for text in texts)
    except NormalizeError:
        return False
    edit = edits.between("mlir", base, head)
    return set(abstraction.essence(abstraction.abstract(edit))) <= _QUIET


def _same(base: State, head: State) -> bool:
    return base.digest == head.digest


def _same_but_for_inferred(base: State, head: State) -> bool:
    return _same(base, head) or _INFERRED.sub("", base.text) == _INFERRED.sub("", head.text)
