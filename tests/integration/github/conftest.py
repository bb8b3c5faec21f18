from __future__ import annotations

import sys
from pathlib import Path

# `fake_github`, and `checkouts` of the tests of commits
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "commits")]
