"""Waiting for what another process does."""

import time


def wait_for(what):
    """What it gives, once it gives something. Without a bound of its own: pytest's ends a test that waits in vain."""
    while not (found := what()):
        time.sleep(0.05)
    return found
