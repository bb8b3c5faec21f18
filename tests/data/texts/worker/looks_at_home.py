import contextlib
import importlib
import os
import sys
from pathlib import Path

home = Path.home()
with contextlib.suppress(OSError):
    (home / "opened.json").read_text()
with contextlib.suppress(OSError):
    os.listdir(home / "listed")
with contextlib.suppress(OSError):
    os.scandir(home / "scanned")
if not os.path.isdir(home / "made"):
    os.makedirs(home / "made")
sys.path.insert(0, str(home / "mine"))
with contextlib.suppress(ImportError):
    importlib.import_module("module")
(home / "absent.json").exists()
os.path.exists(os.path.expanduser("~/asked.json"))
