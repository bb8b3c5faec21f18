"""Numpy arrays that stand for results of kernels: reads of their values are noted. Imported only if numpy is
there.
"""

from __future__ import annotations

import numpy

from . import noted


def of(array):
    """Integers become zeros, because a test may use them as indices."""
    if not isinstance(array, numpy.ndarray):
        return array
    return (numpy.zeros_like(array) if array.dtype.kind in "iu" else array).view(_Computed)


class _Computed(numpy.ndarray):
    def __array_wrap__(self, array, context=None, return_scalar=False):
        return numpy.asarray(array).view(_Computed)

    def __array_function__(self, function, types, args, kwargs):
        return _all_of(super().__array_function__(function, types, args, kwargs))

    def __getitem__(self, index):
        return _all_of(super().__getitem__(index))


def _all_of(result):
    if isinstance(result, (tuple, list)):
        return type(result)(map(_all_of, result)) if not hasattr(result, "_fields") else result
    return (
        numpy.asarray(result).view(_Computed)
        if isinstance(result, (numpy.ndarray, numpy.generic))
        else result
    )


def _reading(name):
    original = getattr(numpy.ndarray, name)

    def read(self, *args, **kwargs):
        noted.value_read()
        return original(self, *args, **kwargs)

    return read


for _name in (
    "__bool__ __int__ __float__ __complex__ __index__ __contains__ item tolist tobytes argmax argmin nonzero"
).split():
    setattr(_Computed, _name, _reading(_name))
