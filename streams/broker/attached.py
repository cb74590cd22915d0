"""Processes that do not outlive the one that started them, however that ends."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable


def die_with_parent() -> Callable[[], None] | None:
    """What makes a child ask the kernel to end it with us (prctl(2)), even when we are killed.

    For ``preexec_fn``: it makes nothing but system calls. The kernel watches the thread that
    starts the child, so that thread must live as long. None where there is no such thing (all but
    Linux).
    """
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)
    parent = os.getpid()
    set_parent_death_signal = 1

    def ask() -> None:
        libc.prctl(set_parent_death_signal, signal.SIGKILL)
        if os.getppid() != parent:  # it ended in between
            os.kill(os.getpid(), signal.SIGKILL)

    return ask
