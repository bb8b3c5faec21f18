"""A command as a user types it."""

from click.testing import CliRunner


def typed(command, *words):
    """Its exit code, and what it prints; what it raises is raised."""
    words = [str(word) for word in words]
    done = CliRunner().invoke(command, words, standalone_mode=False, catch_exceptions=False)
    return done.return_value, done.output
