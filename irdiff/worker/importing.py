"""Imports from below a corpus root, compiled under paths relative to it.

The name of a file reaches the machine code (the text of a device assertion), so the same kernel must have
the same one in the exports of two revisions. Workloads are compiled that way already; this does it for
what they import.
"""

from __future__ import annotations

import importlib.machinery
import os
import sys


class _Loader(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname):
        """From the source alone: bytecode would bring the path it was compiled under."""
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), os.path.relpath(path, self.root))


def import_below(root):
    """Puts `root` on the path. The process must stay in that folder for sources to be found again."""
    if root in sys.path:
        return

    class Loader(_Loader):
        pass

    Loader.root = root
    finder = importlib.machinery.FileFinder.path_hook((Loader, importlib.machinery.SOURCE_SUFFIXES))

    def hook(path):
        if path != root and not path.startswith(root + os.sep):
            raise ImportError(path)
        return finder(path)

    sys.path_hooks.insert(0, hook)
    sys.path_importer_cache.pop(root, None)
    sys.path.insert(0, root)
