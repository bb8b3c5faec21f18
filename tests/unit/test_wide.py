from pathlib import Path

from tests.programs import wide

ROOT = Path(__file__).parents[2]


def test_every_wide_test_is_some_change_s():
    folder = ROOT / wide.FOLDER
    marked = {
        str(path.relative_to(folder)) for path in folder.rglob("*.py") if "mark.wide" in path.read_text()
    }
    assert marked == set(wide.WIDE)
    starts = {start for row in wide.WIDE.values() for start in row}
    assert [start for start in starts if not list(ROOT.glob(start.rstrip("/") + "*"))] == []
    assert wide.touched(["irdiff/cluster/client.py"]) == [wide.FOLDER + "test_cluster.py"]
    assert wide.touched(["README.md"]) == []
