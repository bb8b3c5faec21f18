"""Readers and writers of values as JSON, by the type of a value.

Each is built when it is first needed. To build all of them would take a tenth of a second of every command.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter

T = TypeVar("T")


def adapter(kind: type[T]) -> TypeAdapter[T]:
    adapter: TypeAdapter[T] = _built(kind)  # type: ignore[arg-type]  # a type is hashable
    return adapter


@cache
def _built(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
