"""Stopping: the first signal asks, the second one ends."""

import asyncio
import os
import signal

SIGNALS = (signal.SIGTERM, signal.SIGINT)


def stopped_by_signal() -> asyncio.Event:
    """An event that SIGTERM and SIGINT set; the next one of them ends the process at once."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def ask(number: signal.Signals) -> None:
        if stop.is_set():
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        stop.set()

    for number in SIGNALS:
        loop.add_signal_handler(number, ask, number)
    return stop
