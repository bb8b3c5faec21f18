"""The expressions of GitHub Actions, as far as workflows use them: operators, functions, contexts, `.*`.

An expression is written as one of Python, whose operands are `_Value`s, and evaluated.
"""

import json
import re
from collections.abc import Mapping

_TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<number>-?\d+(?:\.\d+)?)|(?P<sign>&&|\|\||==|!=|[!(),])"
    r"|(?P<part>\.\s*(?:\*|[A-Za-z_][\w-]*))|(?P<name>[A-Za-z_][\w-]*)(?P<call>\s*\()?)"
)
_INSIDE = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
_SIGNS = {"&&": " and ", "||": " or ", "!": " ~", "==": "==", "!=": "!=", "(": "(", ")": ")", ",": ","}
_WORDS = {"true": True, "false": False, "null": None}
STATUS = ("success", "failure", "always", "cancelled")


def interpolated(text, context, functions):
    """A value of a workflow with every `${{ … }}` in it replaced by its text."""
    return _INSIDE.sub(lambda found: as_text(evaluated(found[1], context, functions)), text)


def condition(text, context, functions):
    """Of a job or a step. One that names no status function holds only where nothing failed before."""
    if text is None:
        return bool(functions["success"]())
    inside = _INSIDE.fullmatch(text.strip())
    bare = inside[1] if inside else text
    if not any(re.search(rf"\b{name}\s*\(", bare) for name in STATUS) and not functions["success"]():
        return False
    return bool(_Value(evaluated(bare, context, functions)))


def evaluated(text, context, functions):
    known = {**functions, **_FUNCTIONS}
    operands = []
    written = ""
    position, end = 0, len(text.rstrip())
    while position < end:
        found = _TOKEN.match(text, position)
        assert found, f"cannot read {text[position:]!r}"
        position = found.end()
        if found["sign"]:
            written += _SIGNS[found["sign"]]
        elif found["part"]:
            written += f".part({found['part'][1:].strip()!r})"
        else:
            written += f"operands[{len(operands)}]" + ("(" if found["call"] else "")
            operands.append(_operand(found, context, known))
    return eval(written.strip(), {"operands": operands}).value


def _operand(found, context, functions):
    if found["text"]:
        return _Value(found["text"][1:-1].replace("''", "'"))
    if found["number"]:
        return _Value(json.loads(found["number"]))
    name = found["name"]
    if found["call"]:
        return lambda *values: _Value(functions[name](*(value.value for value in values)))
    if name in _WORDS:
        return _Value(_WORDS[name])
    assert name in context, f"there is no context {name!r} here"
    return _Value(context[name])


class _Value:
    """A value with GitHub's ideas of truth and equality."""

    def __init__(self, value, *, is_each=False):
        self.value, self._is_each = value, is_each

    def part(self, name):
        if name == "*":
            return _Value(self.value or (), is_each=True)
        if self._is_each:
            return _Value([row.get(name) for row in self.value])
        return _Value(self.value.get(name) if isinstance(self.value, Mapping) else None)

    def __bool__(self):
        return self.value not in (None, False, 0, "")

    def __invert__(self):
        return _Value(not self)

    def __eq__(self, other):
        assert isinstance(other, _Value)
        return _Value(_equal(self.value, other.value))

    def __ne__(self, other):
        return ~(self == other)


def as_text(value):
    if isinstance(value, bool | dict | list):
        return json.dumps(value)
    return "" if value is None else str(value)


def _equal(left, right):
    if isinstance(left, str) and isinstance(right, str):
        return left.lower() == right.lower()
    if type(left) is type(right) or isinstance(left, list | dict) or isinstance(right, list | dict):
        return bool(left == right)
    return _number(left) == _number(right)


def _number(value):
    """Values of two kinds are compared as numbers: a variable that nobody set equals the empty text."""
    try:
        return float(value or 0)
    except ValueError:
        return float("nan")


def _contains(where, what):
    if isinstance(where, list):
        return any(_equal(row, what) for row in where)
    return as_text(what).lower() in as_text(where).lower()


_FUNCTIONS = {
    "contains": _contains,
    "startsWith": lambda text, start: as_text(text).lower().startswith(as_text(start).lower()),
    "fromJSON": json.loads,
    "toJSON": json.dumps,
    "format": lambda text, *values: re.sub(r"\{(\d+)\}", lambda found: as_text(values[int(found[1])]), text),
}
