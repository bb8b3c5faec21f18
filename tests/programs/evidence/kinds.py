"""The ways in which a number reaches a kernel, as pieces of generated source.

A piece is one term of a kernel: an expression of the local variable `x`, and all that must be around it for the
number to get there. Its term may also read `n` (a scalar argument), `BLOCK` (a constexpr) and its own arguments.
In every text ROW is the package of the project, NUMBER the number, I the index of the part, and OP an operator.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace


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

KINDS: Mapping[str, Piece] = {
    # what the source says
    "literal": Piece(term="x OP NUMBER"),
    "global": Piece(above="G_I = tl.constexpr(NUMBER)", term="x OP G_I"),
    "computed": Piece(above="BASE_I = NUMBER\nG_I = tl.constexpr(BASE_I * 2)", term="x OP G_I"),
    "tuple": Piece(above="G_I = tl.constexpr((1.0, NUMBER))", term="x OP G_I[1]"),
    "conditional": Piece(above="G_I = tl.constexpr(NUMBER if FLAG else 11.0 + NUMBER)", term="x OP G_I"),
    # other modules
    "imported": Piece(above="from ROW.set_I import G_I", term="x OP G_I", files={"set_I.py": _SCALE}),
    "aliased": Piece(above="from ROW.set_I import G_I as H_I", term="x OP H_I", files={"set_I.py": _SCALE}),
    "star": Piece(above="from ROW.set_I import *", term="x OP G_I", files={"set_I.py": _SCALE}),
    "reexported": Piece(
        above="from ROW.pack_I import G_I",
        term="x OP G_I",
        files={"pack_I/__init__.py": "from .values import G_I\n", "pack_I/values.py": _SCALE},
    ),
    "module": Piece(above="from ROW import set_I", term="x OP set_I.G_I", files={"set_I.py": _SCALE}),
    "plain": Piece(above="from ROW import set_I", term="x OP set_I.G", files={"set_I.py": "G = NUMBER\n"}),
    "nested": Piece(
        above="import ROW.pack_I.values",
        term="x OP ROW.pack_I.values.G_I",
        files={"pack_I/__init__.py": "", "pack_I/values.py": _SCALE},
    ),
    "getattr": Piece(
        above="from ROW import set_I", term='x OP getattr(set_I, "G_I")', files={"set_I.py": _SCALE}
    ),
    "f-string": Piece(
        above="from ROW import set_I",
        term='x OP getattr(set_I, f"{K_I}_I")',
        arguments={"K_I": '"G"'},
        files={"set_I.py": _SCALE},
    ),
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
    "class": Piece(
        above="from ROW import set_I", term="x OP set_I.Chosen.number", files={"set_I.py": _CLASSES}
    ),
    "instance": Piece(
        above="from ROW import set_I", term="x OP set_I.CHOSEN.number", files={"set_I.py": _INSTANCE}
    ),
    "enum": Piece(
        above="from ROW import set_I", term="x OP set_I.Mode.FAST.number", files={"set_I.py": _ENUM}
    ),
    "namedtuple": Piece(
        above="from ROW import set_I",
        term="x OP set_I.PAIR.second",
        files={
            "set_I.py": "from collections import namedtuple\n\n"
            'PAIR = namedtuple("Pair", ["first", "second"])(1.0, NUMBER)\n'
        },
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
    "default": Piece(
        above="from ROW.set_I import D as D_I\n\n\n@triton.jit\n"
        "def scaled_I(x, scale: tl.constexpr = D_I):\n    return x OP scale",
        term="scaled_I(x)",
        files={"set_I.py": "D = NUMBER\n"},
    ),
    "keyword-only": Piece(
        above="from ROW.set_I import D as D_I\n\n\n@triton.jit\n"
        "def scaled_I(x, *, scale: tl.constexpr = D_I):\n    return x OP scale",
        term="scaled_I(x)",
        files={"set_I.py": "D = NUMBER\n"},
    ),
    "noinline": Piece(
        above="from ROW.set_I import OUTLINED as O_I\n\n\n@triton.jit(noinline=O_I)\n"
        "def scalar_I(n):\n    return n * NUMBER",
        term="x OP scalar_I(n)",
        files={"set_I.py": "OUTLINED = FLAG\n"},
    ),
    "exec": Piece(
        above="from ROW.made_I import scaled_I", term="scaled_I(x)", files={"made_I.py": _GENERATED}
    ),
    # what constexpr functions read
    "function-body": Piece(above=_FUNCTION + "n * NUMBER", term="x OP number_I(BLOCK)"),
    "function-global": Piece(above="P_I = NUMBER" + _FUNCTION + "n * P_I", term="x OP number_I(BLOCK)"),
    "function-table": Piece(
        above="from ROW.set_I import TABLE as T_I" + _FUNCTION + 'T_I[n]["number"]',
        term="x OP number_I(BLOCK)",
        files={"set_I.py": 'TABLE = {256: {"number": NUMBER}}\n'},
    ),
    "function-lambda": Piece(
        above="L_I = [lambda n: n * NUMBER]" + _FUNCTION + "L_I[0](n)", term="x OP number_I(BLOCK)"
    ),
    "function-class": Piece(
        above="from ROW.set_I import Chosen as C_I" + _FUNCTION + "n * C_I.number",
        term="x OP number_I(BLOCK)",
        files={"set_I.py": _CLASSES},
    ),
    "function-instance": Piece(
        above="from ROW.set_I import CHOSEN as C_I" + _FUNCTION + "n * C_I.number",
        term="x OP number_I(BLOCK)",
        files={"set_I.py": _INSTANCE},
    ),
    "function-module": Piece(
        above="import ROW.set_I" + _FUNCTION + "n * ROW.set_I.G",
        term="x OP number_I(BLOCK)",
        files={"set_I.py": "G = NUMBER\n"},
    ),
    "function-lazy": Piece(
        above=_FUNCTION.replace("    return ", "    from ROW.set_I import G\n\n    return n * G"),
        term="x OP number_I(BLOCK)",
        files={"set_I.py": "G = NUMBER\n"},
    ),
    # arguments
    "argument": Piece(term="x OP A_I", arguments={"A_I": "NUMBER"}),
    "argument-tuple": Piece(term="x OP A_I[1]", arguments={"A_I": "(1.0, NUMBER)"}),
    "argument-dataclass": Piece(
        term="x OP A_I.twice",
        arguments={"A_I": "Chosen_I()"},
        imports="from ROW.set_I import Chosen as Chosen_I",
        files={"set_I.py": _DATACLASS},
    ),
    "argument-enum": Piece(
        term="x OP A_I.number",
        arguments={"A_I": "Mode_I.FAST"},
        imports="from ROW.set_I import Mode as Mode_I",
        files={"set_I.py": _ENUM},
    ),
    "argument-instance": Piece(
        term="x OP A_I.number",
        arguments={"A_I": "CHOSEN_I"},
        imports="from ROW.set_I import CHOSEN as CHOSEN_I",
        files={"set_I.py": _INSTANCE},
    ),
    "argument-function": Piece(
        term="A_I(x)",
        arguments={"A_I": "scaled_I"},
        imports="from ROW.help_I import scaled_I",
        files={"help_I.py": _SCALED},
    ),
    "argument-functions": Piece(
        term="A_I[1][0](x)",
        arguments={"A_I": "(0, (scaled_I, 1))"},
        imports="from ROW.help_I import scaled_I",
        files={"help_I.py": _SCALED},
    ),
    # data and state
    "json": Piece(above=_JSON, term="x OP G_I", files={"number_I.json": '{"number": NUMBER}\n'}),
    "rebound": Piece(
        above="from ROW import set_I",
        term="x OP set_I.G",
        imports="import ROW.set_I",
        before="ROW.set_I.G = NUMBER",
        files={"set_I.py": "G = 19.0\n"},
    ),
    "rebound-and-back": Piece(
        above="from ROW import set_I",
        term="x OP set_I.G",
        imports="import ROW.set_I",
        before="ROW.set_I.G = NUMBER",
        after="ROW.set_I.G = 19.0",
        files={"set_I.py": "G = 19.0\n"},
    ),
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
    return replace(
        chosen,
        above=filled(chosen.above),
        term=filled(chosen.term),
        arguments={filled(name): filled(value) for name, value in chosen.arguments.items()},
        imports=filled(chosen.imports),
        before=filled(chosen.before),
        after=filled(chosen.after),
        files=files,
    )
