"""`python -m irdiff.capture [--out FOLDER] script.py [args…]`: a program's kernels as a corpus.

Runs inside the user's own interpreter, next to its Triton and torch: standard library and triton only,
Python 3.9 on. `irdiff capture` runs this file with the interpreter that it is told.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
NO_TRITON = 69
"""Exit code (EX_UNAVAILABLE of sysexits.h) where the interpreter has no Triton: nothing was run."""


def main() -> int:
    """Loads the folder `worker` under the name that it has inside toolchains, and hands over to it."""
    # run by its path, this file's folder would lend its modules to the program
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != _HERE]
    if importlib.util.find_spec("triton") is None:
        return NO_TRITON
    folder = _HERE.parent / "worker"
    spec = importlib.util.spec_from_file_location(
        "irdiff_worker", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None and spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["irdiff_worker"] = package
    spec.loader.exec_module(package)
    code: int = importlib.import_module("irdiff_worker.program").main()
    return code


if __name__ == "__main__":
    sys.exit(main())
