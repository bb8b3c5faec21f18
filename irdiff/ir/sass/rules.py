r"""Readable form of NVIDIA machine code, for showing only: `machine_code` decides what is the same.

Reads the output of `nvdisasm -c` and of `cuobjdump -sass`.

Rules (before → after; why)
- `/*0010*/`, `/* 0x00005800ff017624 */` → dropped: address and encoding. Encodings hold scheduling and
  cache control that the text does not show, one reason why this form is no judge.
- `.L_x_3` → `.L0` by first use, unnamed ones dropped; a branch to an absolute address → relative to its
  own (`BRA 0x1f0` at 0x1d0 → `BRA .+0x20`): places move when code before them grows.
- `NOP` behind the last instruction that is none, and `BRA` to itself before them → dropped: padding.
- directives of nvdisasm (`.section`, `.align`, …), comments, header lines of cuobjdump → dropped,
  except the name of the function.
- runs of blanks → one blank.
"""

from __future__ import annotations

import re

from irdiff.ir.canonical import Numbering, Rows, unrecognized
from irdiff.ir.lexing import SASS, Strings, collapse_spaces, drop_unused_labels

_ADDRESS = re.compile(r"^[ \t]*/\*([0-9a-f]{4,})\*/([^\n]*)$", re.M)
_BRANCH = re.compile(
    r"^([ \t{]*(?:@!?U?P[T\d]\w*[ \t]+)?(?:BRA|BRX|BRXU|JMP|JMX|CALL|BSSY|SSY|PBK|PCNT)\b[^;\n]*?)"
    r"0x([0-9a-f]+)(?=[ ]*;)"
)
_LABEL = r"\.L(?:_x_)?\d+(?![\w.])"
_PADDING = re.compile(r"NOP ?;|BRA \.\+0x0 ?;")
_KEPT_HEADER = re.compile(r"^(?:\.text\.([\w.$]+):|Function : ([\w.$]+)|\.section \.text\.([\w.$]+),.*)$")
_INSTRUCTION = re.compile(r"^(?:\{ )?(?:@!?U?P[T\d]\w* )?[A-Z][A-Z0-9_]+(?:[. ;]|$)")


def rows(stage: str, text: str) -> Rows:
    bare = Strings(SASS).read(_ADDRESS.sub(_make_relative, text))
    body = [_keep(line) for line in collapse_spaces(bare).split("\n")]
    if not any(_INSTRUCTION.match(line) for line in body):
        raise unrecognized(stage, "an instruction")
    _drop_padding(body)
    labels = Numbering(".L")
    used = drop_unused_labels("\n".join(body), _LABEL)
    numbered = re.sub(_LABEL, lambda match: labels[match.group()], used)
    return Rows(body=numbered.split("\n"), tail=[], header={})


def _make_relative(match: re.Match[str]) -> str:
    address = int(match.group(1), 16)

    def relative(branch: re.Match[str]) -> str:
        return f"{branch.group(1)}.{int(branch.group(2), 16) - address:+#x}"

    return _BRANCH.sub(relative, match.group(2))


def _keep(line: str) -> str:
    if not line or _INSTRUCTION.match(line):
        return line
    header = _KEPT_HEADER.match(line)
    if header:
        return f"Function : {next(filter(None, header.groups()))}"
    if line == "}" or re.fullmatch(rf"(?:{_LABEL}|\.L[\w.$]*):", line) or line.startswith("("):
        return line
    return ""


def _drop_padding(body: list[str]) -> None:
    """Function by function, from the end."""
    padding = True
    for index in range(len(body) - 1, -1, -1):
        line = body[index]
        if line.startswith("Function : "):
            padding = True
        elif padding and (_PADDING.fullmatch(line) or _jumps_to_itself(line, body[index - 1])):
            body[index] = ""
        elif line and not line.endswith(":"):
            padding = False


def _jumps_to_itself(line: str, before: str) -> bool:
    return re.fullmatch(rf"BRA `\({_LABEL}\) ?;", line) is not None and f"({before[:-1]})" in line
