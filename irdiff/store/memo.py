"""Keeps results of steps under their inputs and the code that computes them.

    STEP = MemoStep("compared", __name__, CodeComparison)

    memo = store.memo(STEP, [launches, toolchains])
    result = memo.get()
    if result is None:
        result = …
        memo.keep(result)


A step is a module: a changed line in it, or in anything that it imports, invalidates its results, and no
others.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar

from pydantic import TypeAdapter

from irdiff.store import code

T = TypeVar("T")


class MemoStep(Generic[T]):
    def __init__(self, name: str, module: str, kind: Any) -> None:
        """`kind` is the type of a result, which JSON must be able to hold."""
        self.name = name
        self.module = module
        self._kind = kind

    @property
    def code(self) -> str:
        return code.digest_of(self.module)

    def read(self, record: object) -> T:
        result: T = self._adapter.validate_python(record)
        return result

    def written(self, result: T) -> object:
        return self._adapter.dump_python(result, mode="json")

    @cached_property
    def _adapter(self) -> TypeAdapter[T]:
        return TypeAdapter(self._kind)


class _HoldsRecords(Protocol):
    def get_record(self, kind: str, key: str) -> Any | None: ...

    def put_record(self, kind: str, key: str, value: object) -> None: ...


class Memo(Generic[T]):
    def __init__(self, store: _HoldsRecords, step: MemoStep[T], key: str) -> None:
        self._store = store
        self._step = step
        self.key = key

    def get(self) -> T | None:
        """The blobs that the result names may be gone."""
        record = self._store.get_record(self._step.name, self.key)
        return None if record is None else self._step.read(record)

    def keep(self, result: T) -> None:
        """A result that may differ at another time or on another machine must not be kept."""
        self._store.put_record(self._step.name, self.key, self._step.written(result))
