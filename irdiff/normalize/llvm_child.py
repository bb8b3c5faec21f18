"""The process that reads LLVM IR for `llvm_reading`: one text at a time, until its input is closed.

LLVM may abort it, or use up its memory: it dies alone. Messages are a length of 8 bytes, most significant
first, and as many bytes; the first one out is the form's name. An answer is a line with the names of opaque
intrinsics, and the text; one that cannot be read is answered by the length `UNREADABLE`. Started as
`python -m irdiff.normalize.llvm_child`, never imported but for its constants.
"""

from __future__ import annotations

import resource
import sys
from typing import BinaryIO

UNREADABLE = (1 << 64) - 1
MEMORY_BYTES = 2 << 30
"""The limit of its address space. A text of 8 MB takes a third of it."""


def serve(requests: BinaryIO, replies: BinaryIO) -> None:
    from irdiff.normalize import llvm_reader  # loads LLVM

    _send(replies, llvm_reader.FORM.encode())
    while head := requests.read(8):
        text = requests.read(int.from_bytes(head)).decode()
        reading = llvm_reader.reprint(text)
        if reading is None:
            replies.write(UNREADABLE.to_bytes(8))
            replies.flush()
        else:
            _send(replies, f"{' '.join(reading.opaque)}\n{reading.text}".encode())


def _send(replies: BinaryIO, content: bytes) -> None:
    replies.write(len(content).to_bytes(8) + content)
    replies.flush()


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    serve(sys.stdin.buffer, sys.stdout.buffer)
