"""The lines of the compiler that one request runs, where the compiler was built to count them.

Such a build exports three functions from its library (irdiff links them in): the counters as they were before
any workload was loaded are kept, each request begins from them, and writes its own when it ends. So what runs
as the library is loaded counts for every request, and what the capture of other launches ran counts for none.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib

NAME = "profile"
"""The entry of a request that names the file for its counters."""


def mark():
    """Keeps the counters as they are. Call it before anything but importing triton has been done."""
    library = _library()
    if library is not None:
        library.irdiff_coverage_mark()


@contextlib.contextmanager
def counted(request):
    """Writes the counters of what is done meanwhile, where the request wants them."""
    if NAME not in request:
        yield
        return
    library = _library()
    if library is None:
        raise RuntimeError("irdiff: this compiler was not built to count the lines that run")
    path = request[NAME].encode()
    library.irdiff_coverage_begin(path)
    try:
        yield
    finally:
        if library.irdiff_coverage_end() != 0:
            raise RuntimeError("irdiff: the counters of the compiler's lines could not be written")


def _library():
    """The library of the compiler, where it counts."""
    try:
        path = importlib.import_module("triton._C.libtriton").__file__
        library = ctypes.CDLL(path)
        return library if hasattr(library, "irdiff_coverage_begin") else None
    except (ImportError, OSError, TypeError):
        return None
