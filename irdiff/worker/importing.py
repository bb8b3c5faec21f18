"""Imports from below a corpus root, and of packages with kernels, compiled under paths relative to them.

The name of a file reaches the machine code (the text of a device assertion), so the same kernel must have
the same one in the exports of two revisions, and in the environments of two machines. Workloads are
compiled that way already; this does it for what they import.
"""

from __future__ import annotations

import importlib.machinery
import os
import sys


class _Loader(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname):
        """Compiles from the source alone: bytecode would bring the path that it was compiled under."""
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), os.path.relpath(path, self.root))


def import_below(root, folders):
    """Puts folders below `root` on the path, the first one first. The process must stay in `root` for sources
    to be found again.
    """
    places = [os.path.normpath(os.path.join(root, folder)) for folder in folders]
    if places[0] in sys.path:
        return
    _hook(root, [root, *places])
    sys.path[:0] = dict.fromkeys(places)


def import_packages(site, names):
    """Puts `site` last on the path; of what lies there the named packages alone go by relative paths.

    Their sources are found again through their loaders, wherever the process is.
    """
    _hook(site, [os.path.join(site, name) for name in names])
    sys.path.append(site)


def _hook(root, folders):
    class Loader(_Loader):
        pass

    Loader.root = root
    finder = importlib.machinery.FileFinder.path_hook((Loader, importlib.machinery.SOURCE_SUFFIXES))

    def hook(path):
        if not any(path == folder or path.startswith(folder + os.sep) for folder in folders):
            raise ImportError(path)
        return finder(path)

    sys.path_hooks.insert(0, hook)
    for folder in folders:
        sys.path_importer_cache.pop(folder, None)
