"""The expressions of GitHub Actions, as far as workflows use them: operators, functions, contexts, `.*`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

_TOKEN = re.compile(
    r"\s*(?:('(?:[^']|'')*')|(-?\d+(?:\.\d+)?)|(&&|\|\||==|!=|<=|>=|[!()<>,.\[\]*])|([A-Za-z_][\w-]*))"
)
_INSIDE = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
STATUS = ("success", "failure", "always", "cancelled")


def interpolated(text: str, context: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]]) -> str:
    """A value of a workflow with every `${{ … }}` in it replaced by its text."""
    return _INSIDE.sub(lambda found: as_text(evaluated(found[1], context, functions)), text)


def evaluated(text: str, context: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]]) -> Any:
    parser = _Parser(text, context, functions)
    value = parser.either()
    assert parser.at == len(parser.tokens), f"{text!r} goes on after an expression"
    return value


def condition(
    text: str | None, context: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]]
) -> bool:
    """Of a job or a step. One that names no status function holds only where nothing failed before."""
    if text is None:
        return bool(functions["success"]())
    inside = _INSIDE.fullmatch(text.strip())
    bare = inside[1] if inside else text
    if not any(re.search(rf"\b{name}\s*\(", bare) for name in STATUS) and not functions["success"]():
        return False
    return truthy(evaluated(bare, context, functions))


def truthy(value: Any) -> bool:
    return value not in (None, False, 0, "")


def as_text(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case dict() | list():
            return json.dumps(value)
        case _:
            return str(value)


class _Parser:
    def __init__(self, text: str, context: Mapping[str, Any], functions: Mapping[str, Any]) -> None:
        self.tokens: list[tuple[str, str]] = []
        position = 0
        while position < len(text.rstrip()):
            found = _TOKEN.match(text, position)
            assert found, f"cannot read {text[position:]!r}"
            kind = ("text", "number", "sign", "name")[(found.lastindex or 1) - 1]
            self.tokens.append((kind, found[found.lastindex or 1]))
            position = found.end()
        self.at = 0
        self.context = context
        self.functions = {
            **functions,
            "contains": _contains,
            "startsWith": lambda text, start: as_text(text).lower().startswith(as_text(start).lower()),
            "fromJSON": json.loads,
            "toJSON": json.dumps,
            "format": lambda text, *values: re.sub(r"\{(\d+)\}", lambda m: as_text(values[int(m[1])]), text),
        }

    def _next(self, *signs: str) -> str | None:
        if self.at < len(self.tokens) and self.tokens[self.at] in [("sign", sign) for sign in signs]:
            self.at += 1
            return self.tokens[self.at - 1][1]
        return None

    def either(self) -> Any:
        value = self._both()
        while self._next("||"):
            other = self._both()
            value = value if truthy(value) else other
        return value

    def _both(self) -> Any:
        value = self._compared()
        while self._next("&&"):
            other = self._compared()
            value = other if truthy(value) else value
        return value

    def _compared(self) -> Any:
        value = self._unary()
        while sign := self._next("==", "!="):
            value = _equal(value, self._unary()) == (sign == "==")
        return value

    def _unary(self) -> Any:
        if self._next("!"):
            return not truthy(self._unary())
        if self._next("("):
            value = self.either()
            assert self._next(")")
            return value
        kind, text = self.tokens[self.at]
        self.at += 1
        if kind == "text":
            return text[1:-1].replace("''", "'")
        if kind == "number":
            return float(text) if "." in text else int(text)
        assert kind == "name", text
        if self._next("("):
            arguments = []
            while not self._next(")"):
                arguments.append(self.either())
                self._next(",")
            return self.functions[text](*arguments)
        if text in ("true", "false", "null"):
            return {"true": True, "false": False, "null": None}[text]
        assert text in self.context, f"there is no context {text!r} here"
        return self._inside(self.context[text])

    def _inside(self, value: Any) -> Any:
        while self._next("."):
            if self._next("*"):
                assert self._next(".")
                name = self.tokens[self.at][1]
                self.at += 1
                value = [row.get(name) for row in value or ()]
                continue
            name = self.tokens[self.at][1]
            self.at += 1
            value = value.get(name) if isinstance(value, Mapping) else None
        return value


def _equal(left: Any, right: Any) -> bool:
    if isinstance(left, str) and isinstance(right, str):
        return left.lower() == right.lower()
    return bool(left == right)


def _contains(where: Any, what: Any) -> bool:
    if isinstance(where, list):
        return any(_equal(row, what) for row in where)
    return as_text(what).lower() in as_text(where).lower()
