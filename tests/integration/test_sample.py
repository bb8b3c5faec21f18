"""The sample report in `reports/samples`, and the picture of the terminal, are what irdiff makes today."""

from tests.programs import examples


def test_the_sample_is_not_stale(cache, previous, newest, tmp_path, monkeypatch):
    monkeypatch.setenv("IRDIFF_CACHE", str(cache))
    for path, text in examples.sample(tmp_path / "run").items():
        assert examples.settled(text) == examples.settled(examples.read(path)), (
            f"{path.name} is stale: `make examples`"
        )
