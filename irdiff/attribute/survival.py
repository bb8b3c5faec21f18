"""Which edits survive to the machine code: the first difference is not always its cause.

An edit survives a stage unless the stage gives the same output without it. So where head's stage makes head's
output from *base's* text, nothing before the stage has an effect, and the stage alone is the cause.

Inside the stage that makes LLVM IR there is no such test for each pass, but states between passes: where a
lowering differs in nothing that can be told, and LLVM's optimizer makes the same of both on the way, the pass
behind the last equal pair is the cause. Attributes that LLVM infers for functions and arguments (`nofree`)
are no difference there, unless they are all there is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from irdiff.attribute import passes
from irdiff.attribute.passes import Culprit, State
from irdiff.compare import abstraction, instructions
from irdiff.compare.edits import Edit

_INFERRED = re.compile(r"\b(?:nofree|readnone|readonly|writeonly|nocapture|noundef)\b ?|captures\(none\) ?")
_QUIET = frozenset(
    sign + name for sign in "+-" for name in (*instructions.UNTELLING, instructions.OTHERS, "ttg.warp_id")
)


def llvm_culprit(base: Sequence[State], head: Sequence[State]) -> Culprit | None:
    """The pass of LLVM's optimizer whose edit is there at the end."""
    return passes.find_culprit(base, head, _same_but_for_inferred) or passes.find_culprit(base, head, _same)


def tells_nothing(edit: Edit | None) -> bool:
    """Whether two states on the way to LLVM IR differ in address arithmetic and the like alone."""
    return edit is not None and set(abstraction.essence(abstraction.abstract(edit))) <= _QUIET


def _same(base: State, head: State) -> bool:
    return base.digest == head.digest


def _same_but_for_inferred(base: State, head: State) -> bool:
    return _same(base, head) or _INFERRED.sub("", base.text) == _INFERRED.sub("", head.text)
