"""Tracks which launches a launch is ordered after, if a program uses several streams.

Each stream has a vector clock: how many launches of each other stream end before its next one begins. Events
and waits of the host advance it. Work that is no launch of Triton is not seen.
"""

from __future__ import annotations


class Clocks:
    """Streams are identified by their numbers."""

    def __init__(self):
        self._launches: dict = {}
        self._after: dict = {}
        """{stream: {other: how many of its launches end before the next one of `stream` begins}}"""
        self._host: dict = {}
        """{stream: launches that end before whatever the host puts on a stream from now on}"""

    def event(self, stream):
        """Returns the clock of an event that is recorded now, for `wait` and `host_waits`."""
        return self._merged(self._after.get(stream, {}), {stream: self._launches.get(stream, 0)})

    def wait(self, stream, event):
        self._after[stream] = self._merged(self._after.get(stream, {}), event)

    def host_waits(self, event=None):
        """Waits for all work of all streams if `event` is None."""
        self._host = self._merged(self._host, dict(self._launches) if event is None else event)

    def launched(self, stream):
        """Returns {other stream: how many of its launches may still run beside this launch}."""
        clock = self._after[stream] = self._merged(self._after.get(stream, {}), self._host)
        beside = {
            other: count - clock.get(other, 0)
            for other, count in sorted(self._launches.items())
            if other != stream and count > clock.get(other, 0)
        }
        self._launches[stream] = self._launches.get(stream, 0) + 1
        return beside

    @staticmethod
    def _merged(clock, other):
        return {stream: max(clock.get(stream, 0), other.get(stream, 0)) for stream in {**clock, **other}}
