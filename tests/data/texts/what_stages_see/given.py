

from triton import _instrumentation as _i
from triton.backends.nvidia import compiler as _compiler

_compiler.LEVEL = NUMBER


def _edit(text):
    return text.replace("add.f32", "OP.f32").replace("add.rn.f32", "OP.rn.f32")


class _Edit:
    def __call__(self, text):
        return _edit(text)


class _Choose:
    def __call__(self, *made):
        return made[NUMBER == 0]


def _flags():
    return NUMBER


for _point, _callback in (("ptx", _edit), ("thread", _Edit()), ("cubin", _Choose()), ("flags", _flags)):
    _i.register_instrumentation(point=_point, backend="nvidia", callback=_callback)
