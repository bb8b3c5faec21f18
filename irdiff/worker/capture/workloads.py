"""Loads workloads, with their imports compiled under paths relative to the corpus's root.

A file's name reaches the machine code of a device assertion, so the same kernel must have the same name in
the exports of two revisions.
"""

from __future__ import annotations

import ast
import importlib.machinery
import os
import sys
import types

from .. import corpus_api

own_folders: list = []
"""Folders of workloads, and of packages with a known digest."""


def load(root, name, folder=".", imports=()):
    """Loads `ROOT/FOLDER/NAME.py`. `imports` are more folders for the module search path, relative to the
    root. The process must stay in the root, so that sources are found again.
    """
    os.chdir(root)
    _Finder.family = name.partition("/")[0]
    _import_below(root, [folder, *imports])
    path = os.path.normpath(os.path.join(folder, name + ".py"))
    with open(path, encoding="utf-8") as file:
        source = file.read()
    module = types.ModuleType("irdiff_workload." + name.replace("/", "."))
    module.__file__ = path
    sys.modules[module.__name__] = module
    exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)
    if not isinstance(getattr(module, "LAUNCHES", None), dict) or not module.LAUNCHES:
        raise ValueError(f"{path} has no launches: it must end with a dictionary LAUNCHES")
    mistaken = [label for label in module.LAUNCHES if "/" in label]
    if mistaken:  # `a/k` is also the launch of the kernel `k` below the label `a`
        raise ValueError(f"{path}: a label of LAUNCHES has no /: {', '.join(mistaken)}")
    return module


def is_for_this_release(root, name, folder="."):
    """Reads SINCE and UNTIL without running the workload, because an import may fail in an old release."""
    import triton

    with open(os.path.join(root, folder, name + ".py"), encoding="utf-8") as file:
        tree = ast.parse(file.read(), name + ".py")
    constants: dict = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            constants.update(
                (target.id, node.value.value) for target in node.targets if isinstance(target, ast.Name)
            )
    return corpus_api.is_within(triton.__version__, constants.get("SINCE"), constants.get("UNTIL"))


class _Finder(importlib.machinery.FileFinder):
    family = ""

    def find_spec(self, fullname, target=None):
        """Skips packages in the folder of another pack, which may be named like a package."""
        is_pack = os.path.isfile(os.path.join(self.path, fullname, "pack.toml"))
        return None if is_pack and fullname != self.family else super().find_spec(fullname, target)


class _Loader(importlib.machinery.SourceFileLoader):
    root = ""
    exec_module = importlib.machinery.SourceFileLoader.exec_module  # whose calls `noted` notes

    def get_code(self, fullname):
        """Compiles from the source alone: bytecode would contain another path."""
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), os.path.relpath(path, self.root))


def _import_below(root, folders):
    """Puts the first folder first."""
    places = [os.path.normpath(os.path.join(root, folder)) for folder in folders]
    if places[0] not in sys.path:
        _hook(root, [root, *places])
        sys.path[:0] = dict.fromkeys(places)


def import_packages(site, names):
    """Puts `site` last on the path. Only the named packages there get relative paths, and loaders that find
    their sources from any folder.
    """
    _hook(site, [os.path.join(site, name) for name in names])
    sys.path.append(site)


def _hook(root, folders):
    loader = type("Loader", (_Loader,), {"root": root})
    machinery = importlib.machinery
    finder = _Finder.path_hook(
        (machinery.ExtensionFileLoader, machinery.EXTENSION_SUFFIXES),
        (loader, machinery.SOURCE_SUFFIXES),
        (machinery.SourcelessFileLoader, machinery.BYTECODE_SUFFIXES),
    )

    def hook(path):
        if not any(path == folder or path.startswith(folder + os.sep) for folder in folders):
            raise ImportError(path)
        return finder(path)

    own_folders.append(root)
    sys.path_hooks.insert(0, hook)
    for folder in folders:
        sys.path_importer_cache.pop(folder, None)
