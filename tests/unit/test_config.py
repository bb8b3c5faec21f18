"""Which of the caller's variables a note may name."""

from irdiff import config


def test_variables_that_programs_do_not_get(monkeypatch):
    expected = {"USE_FAST", "CUDA_HOME", "CI"}
    elsewhere = ("PATH", "USER", "LC_TIME", "PYTHONPATH", "CUDA_VISIBLE_DEVICES", "TRITON_HOME")
    for name in (*expected, *elsewhere, "TRITON_DEBUG"):
        monkeypatch.setenv(name, "1")
    configuration = config.load()
    assert expected <= configuration.withheld_variables
    assert configuration.withheld_variables.isdisjoint((*elsewhere, "TRITON_DEBUG"))
    assert "TRITON_DEBUG" in configuration.cleared_variables
