"""The ways in which a number reaches a kernel, as pieces of generated source.

A piece is one term of a kernel: an expression of the local variable `x`, and all that must be around it for the
number to get there. Its term may also read `n` (a scalar argument), `BLOCK` (a constexpr) and its own arguments.
In every text ROW is the package of the project, NUMBER the number, I the index of the part, and OP an operator.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Piece:
    above: str = ""
    """Of the module in which the term stands."""
    term: str
    arguments: Mapping[str, str] = field(default_factory=dict)
    """Name of a constexpr parameter that the term reads → what the workload passes."""
    imports: str = ""
    """Of the workload."""
    before: str = ""
    after: str = ""
    """What the launching function does before and after the launch."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Of the package; None where a flag of the part takes the file away."""


_HELPER = "import triton\nimport triton.language as tl\n\n\n"
_SCALE = "import triton.language as tl\n\nG_I = tl.constexpr(NUMBER)\n"
_SCALED = _HELPER + "@triton.jit\ndef scaled_I(x):\n    return x OP NUMBER\n"
_FUNCTION = "\n\n@triton.constexpr_function\ndef number_I(n):\n    return "
_CLASSES = "class Defaults:\n    number = NUMBER\n\n\nclass Chosen(Defaults):\n    pass\n"
_INSTANCE = (
    "class Chosen:\n    def __init__(self, number):\n        self.number = number\n\n"
    '    def __repr__(self):\n        return "Chosen()"\n\n\nCHOSEN = Chosen(NUMBER)\n'
)
_DATACLASS = (
    "from dataclasses import dataclass, field\n\n\n@dataclass(frozen=True)\nclass Chosen:\n"
    '    name: str = "chosen"\n    number: float = field(default=NUMBER, repr=False)\n\n'
    "    @property\n    def twice(self):\n        return self.number * 2.0\n"
)
_ENUM = (
    "import enum\n\n\nclass Mode(enum.Enum):\n    SLOW = 1\n    FAST = 2\n\n"
    "    @property\n    def number(self):\n        return self.value * NUMBER\n"
)
_FACTORY = (
    _HELPER + "def scaled_by(number):\n    scale = tl.constexpr(number)\n\n    @triton.jit\n"
    "    def scaled(x):\n        return x OP scale\n\n    return scaled\n"
)
_GENERATED = '''import linecache

import triton
import triton.language as tl

TEXT = """
@triton.jit
def scaled(x):
    return x OP NUMBER_I
"""
NAME = "<generated ROW I>"
linecache.cache[NAME] = (len(TEXT), None, TEXT.splitlines(keepends=True), NAME)
namespace = {"__name__": __name__, "triton": triton, "tl": tl, "NUMBER_I": tl.constexpr(NUMBER)}
exec(compile(TEXT, NAME, "exec"), namespace)
scaled_I = namespace["scaled"]
'''
_JSON = (
    "import json\nimport os\n\nimport ROW\n\nwith open(os.path.join(os.path.dirname(ROW.__file__), "
    '"number_I.json")) as file:\n    G_I = tl.constexpr(json.load(file)["number"])'
)

_DEFAULT = (
    "from ROW.set_I import D as D_I\n\n\n@triton.jit\n"
    "def scaled_I(SIGNATUREscale: tl.constexpr = D_I):\n    return x OP scale"
)
_REBOUND = {"imports": "import ROW.set_I", "before": "ROW.set_I.G = NUMBER"}
_SET = "from ROW import set_I"


def _of_set(text: str, term: str, above: str = _SET, **more: Any) -> Piece:
    """A number that lies in a module of its own, `set_I.py`."""
    return Piece(above=above, term=term, files={"set_I.py": text}, **more)


def _of_function(text: str, body: str, above: str = "") -> Piece:
    """… and that a constexpr function reads."""
    return _of_set(text, "x OP number_I(BLOCK)", above + _FUNCTION + body)


def _of_argument(value: str, term: str, files: Mapping[str, str], imports: str) -> Piece:
    """… and that the workload passes, or that what it passes has."""
    return Piece(term=term, arguments={"A_I": value}, imports=imports, files=files)


def _of_help(value: str, term: str) -> Piece:
    return _of_argument(value, term, {"help_I.py": _SCALED}, "from ROW.help_I import scaled_I")


KINDS: Mapping[str, Piece] = {
    # what the source says
    "literal": Piece(term="x OP NUMBER"),
    "global": Piece(above="G_I = tl.constexpr(NUMBER)", term="x OP G_I"),
    "computed": Piece(above="BASE_I = NUMBER\nG_I = tl.constexpr(BASE_I * 2)", term="x OP G_I"),
    "tuple": Piece(above="G_I = tl.constexpr((1.0, NUMBER))", term="x OP G_I[1]"),
    "conditional": Piece(above="G_I = tl.constexpr(NUMBER if FLAG else 11.0 + NUMBER)", term="x OP G_I"),
    # other modules
    "imported": _of_set(_SCALE, "x OP G_I", "from ROW.set_I import G_I"),
    "aliased": _of_set(_SCALE, "x OP H_I", "from ROW.set_I import G_I as H_I"),
    "star": _of_set(_SCALE, "x OP G_I", "from ROW.set_I import *"),
    "reexported": Piece(
        above="from ROW.pack_I import G_I",
        term="x OP G_I",
        files={"pack_I/__init__.py": "from .values import G_I\n", "pack_I/values.py": _SCALE},
    ),
    "module": _of_set(_SCALE, "x OP set_I.G_I"),
    "plain": _of_set("G = NUMBER\n", "x OP set_I.G"),
    "nested": Piece(
        above="import ROW.pack_I.values",
        term="x OP ROW.pack_I.values.G_I",
        files={"pack_I/__init__.py": "", "pack_I/values.py": _SCALE},
    ),
    "getattr": _of_set(_SCALE, 'x OP getattr(set_I, "G_I")'),
    "f-string": _of_set(_SCALE, 'x OP getattr(set_I, f"{K_I}_I")', arguments={"K_I": '"G"'}),
    "optional": Piece(
        above="try:\n    from ROW.set_I import G_I\nexcept ImportError:\n    G_I = tl.constexpr(13.0)",
        term="x OP G_I",
        files={"set_I.py if FLAG": _SCALE},
    ),
    "patched": Piece(
        above="import ROW.set_I",
        term="x OP ROW.set_I.G_I",
        imports="import ROW.patch_I",
        files={
            "set_I.py": _SCALE.replace("NUMBER", "17.0"),
            "patch_I.py": "import triton.language as tl\n\nimport ROW.set_I\n\nROW.set_I.G_I = tl.constexpr(NUMBER)\n",
        },
    ),
    # classes and instances
    "class": _of_set(_CLASSES, "x OP set_I.Chosen.number"),
    "instance": _of_set(_INSTANCE, "x OP set_I.CHOSEN.number"),
    "enum": _of_set(_ENUM, "x OP set_I.Mode.FAST.number"),
    "namedtuple": _of_set(
        'from collections import namedtuple\n\nPAIR = namedtuple("Pair", ["first", "second"])(1.0, NUMBER)\n',
        "x OP set_I.PAIR.second",
    ),
    # functions
    "helper": Piece(
        above="from ROW.help_I import scaled_I", term="scaled_I(x)", files={"help_I.py": _SCALED}
    ),
    "closure": Piece(
        above="from ROW.help_I import scaled_by as by_I\n\nscaled_I = by_I(NUMBER)",
        term="scaled_I(x)",
        files={"help_I.py": _FACTORY},
    ),
    "default": _of_set("D = NUMBER\n", "scaled_I(x)", _DEFAULT.replace("SIGNATURE", "x, ")),
    "keyword-only": _of_set("D = NUMBER\n", "scaled_I(x)", _DEFAULT.replace("SIGNATURE", "x, *, ")),
    "noinline": _of_set(
        "OUTLINED = FLAG\n",
        "x OP scalar_I(n)",
        "from ROW.set_I import OUTLINED as O_I\n\n\n@triton.jit(noinline=O_I)\n"
        "def scalar_I(n):\n    return n * NUMBER",
    ),
    "exec": Piece(
        above="from ROW.made_I import scaled_I", term="scaled_I(x)", files={"made_I.py": _GENERATED}
    ),
    # what constexpr functions read
    "function-body": Piece(above=_FUNCTION + "n * NUMBER", term="x OP number_I(BLOCK)"),
    "function-global": Piece(above="P_I = NUMBER" + _FUNCTION + "n * P_I", term="x OP number_I(BLOCK)"),
    "function-table": _of_function(
        'TABLE = {256: {"number": NUMBER}}\n', 'T_I[n]["number"]', "from ROW.set_I import TABLE as T_I"
    ),
    "function-lambda": Piece(
        above="L_I = [lambda n: n * NUMBER]" + _FUNCTION + "L_I[0](n)", term="x OP number_I(BLOCK)"
    ),
    "function-class": _of_function(_CLASSES, "n * C_I.number", "from ROW.set_I import Chosen as C_I"),
    "function-instance": _of_function(_INSTANCE, "n * C_I.number", "from ROW.set_I import CHOSEN as C_I"),
    "function-module": _of_function("G = NUMBER\n", "n * ROW.set_I.G", "import ROW.set_I"),
    "function-lazy": _of_set(
        "G = NUMBER\n",
        "x OP number_I(BLOCK)",
        _FUNCTION.replace("    return ", "    from ROW.set_I import G\n\n    return n * G"),
    ),
    # arguments
    "argument": _of_argument("NUMBER", "x OP A_I", {}, ""),
    "argument-tuple": _of_argument("(1.0, NUMBER)", "x OP A_I[1]", {}, ""),
    "argument-dataclass": _of_argument(
        "Chosen_I()",
        "x OP A_I.twice",
        {"set_I.py": _DATACLASS},
        "from ROW.set_I import Chosen as Chosen_I",
    ),
    "argument-enum": _of_argument(
        "Mode_I.FAST", "x OP A_I.number", {"set_I.py": _ENUM}, "from ROW.set_I import Mode as Mode_I"
    ),
    "argument-instance": _of_argument(
        "CHOSEN_I", "x OP A_I.number", {"set_I.py": _INSTANCE}, "from ROW.set_I import CHOSEN as CHOSEN_I"
    ),
    "argument-function": _of_help("scaled_I", "A_I(x)"),
    "argument-functions": _of_help("(0, (scaled_I, 1))", "A_I[1][0](x)"),
    # data and state
    "json": Piece(above=_JSON, term="x OP G_I", files={"number_I.json": '{"number": NUMBER}\n'}),
    "rebound": _of_set("G = 19.0\n", "x OP set_I.G", **_REBOUND),
    "rebound-and-back": _of_set("G = 19.0\n", "x OP set_I.G", **_REBOUND, after="ROW.set_I.G = 19.0"),
}
FLAGGED = ("conditional", "optional", "noinline")
"""Kinds with a flag that an edit can turn."""


def piece(kind: str, package: str, index: int, number: float, operator: str, *, flag: bool) -> Piece:
    """The piece of one part of a project, with its own names and number."""
    values = {"ROW": package, "NUMBER": repr(number), "OP": operator, "FLAG": str(flag)}

    def filled(text: str) -> str:
        text = re.sub(r"(?<![A-Za-z])NUMBER(?!_)|\b(?:ROW|OP|FLAG)\b", lambda found: values[found[0]], text)
        return re.sub(r"_I\b", f"_{index}", text).replace(" I>", f" {index}>")

    chosen = KINDS[kind]
    files = {}
    for place, text in chosen.files.items():
        name, _, condition = place.partition(" if ")
        if flag or not condition:
            files[re.sub(r"_I(?=[./])", f"_{index}", name)] = filled(text)
    texts = {name: filled(getattr(chosen, name)) for name in ("above", "term", "imports", "before", "after")}
    arguments = {filled(name): filled(value) for name, value in chosen.arguments.items()}
    return replace(chosen, **texts, arguments=arguments, files=files)
