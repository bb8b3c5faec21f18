"""Names where the difference of a case began: its pass, else the part of the toolchain, else the stage."""

from __future__ import annotations

from collections.abc import Mapping

from irdiff.backends.stages import MAKERS
from irdiff.model import Case, ChangeGroup, Origin
from irdiff.report import phrases
from irdiff.stages import Stage


def of_case(case: Case) -> str:
    origin = case.origin
    if origin is None:
        return "what is not known"
    if part := origin.pass_name or _part(origin):
        return part
    return "what is launched" if origin.stage == Stage.LAUNCH else f"the stage {origin.stage}"


def of_group(group: ChangeGroup, cases: Mapping[str, Case]) -> str:
    """The pass, or `llir: LLVM`, with the parts that `of_case` names for the group's cases."""
    if group.pass_name:
        return group.pass_name
    origins = (cases[name].origin for name in group.members if name in cases)
    parts = dict.fromkeys(part for origin in origins if origin and (part := _part(origin)))
    return f"{group.origin_stage}: {', '.join(parts)}" if parts else group.origin_stage


def _part(origin: Origin) -> str:
    """Returns the first part that can have made the origin's stage differ: others charge other stages."""
    makers = MAKERS.get(origin.stage, ())
    return next((phrases.PARTS[part] for part in origin.charged if part in makers), "")
