"""The process that solves members, one after the other: `python -m infimum.many.child`, fed through pipes.

A member may end this process (a crash, `os._exit`, lack of memory, a kill after a time-out) and nothing else.
"""

from __future__ import annotations

import faulthandler
import os
import pickle
import queue
import signal
import struct
import sys
import threading
import time
from typing import Any, BinaryIO

LENGTH = struct.Struct(">Q")
IDLE = 120.0
"""Seconds without work after which it ends."""
PATIENCE = 3.0
"""Seconds that a member has to end once the process that waits for it is gone."""


def write_frame(pipe: BinaryIO, message: Any) -> None:
    """Send one message."""
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    pipe.write(LENGTH.pack(len(data)))
    pipe.write(data)
    pipe.flush()


def read_frame(pipe: BinaryIO) -> Any:
    """The next message; raises EOFError at the end of the pipe."""
    head = pipe.read(LENGTH.size)
    if len(head) < LENGTH.size:
        raise EOFError
    (size,) = LENGTH.unpack(head)
    data = pipe.read(size)
    if len(data) < size:
        raise EOFError
    return pickle.loads(data)


def main() -> None:
    """Read tasks, solve them, write outcomes, until the pipe ends."""
    answers = os.fdopen(os.dup(1), "wb")
    # What a member prints must not come between the answers.
    os.dup2(2, 1)
    faulthandler.enable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    source = sys.stdin.buffer
    greeting = read_frame(source)
    sys.path[:] = greeting["path"]
    if greeting["cwd"] is not None:
        os.chdir(greeting["cwd"])
    from infimum.many.task import run_task

    _preload()
    tasks: queue.Queue[Any] = queue.Queue()
    threading.Thread(target=_listen, args=(source, tasks), daemon=True).start()
    write_frame(answers, {"ready": os.getpid()})
    while True:
        try:
            task = tasks.get(timeout=IDLE)
        except queue.Empty:
            return
        if task is None:
            return
        answer = run_task(pickle.loads(task))
        sys.stdout.flush()
        write_frame(answers, answer)


def _preload() -> None:
    """What every member needs."""
    import infimum.api
    import infimum.records
    import infimum.runfile  # noqa: F401


def _listen(source: BinaryIO, tasks: queue.Queue[Any]) -> None:
    """Hand on tasks; when the other end is gone, end the member that runs, then this process."""
    try:
        while True:
            tasks.put(read_frame(source))
    except (EOFError, OSError, pickle.UnpicklingError):
        tasks.put(None)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(PATIENCE)
    os._exit(1)


if __name__ == "__main__":
    main()
