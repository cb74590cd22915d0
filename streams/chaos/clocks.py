"""A worker's clock set apart from everybody else's.

What changes is what Python programs ask for the time of day: ``time.time`` and ``time.time_ns``, and
the times that aiokafka gives records. What stays: the monotonic clock, as on a machine whose clock is
wrong or stepped, and ``datetime.now``, so that log lines of several workers still read side by side.
"""

import time


def set_apart(seconds: float) -> None:
    """Let this process's clock be so many seconds ahead, or behind where they are negative.

    To be called before anything is imported that keeps ``time.time`` for itself.
    """
    now, now_ns = time.time, time.time_ns
    time.time = lambda: now() + seconds
    time.time_ns = lambda: now_ns() + round(seconds * 1e9)

    # Its extension asks the system by itself.
    from aiokafka.producer.message_accumulator import BatchBuilder  # noqa: PLC0415 - see above

    append = BatchBuilder.append

    def dated(self: object, *, timestamp: int | None, **rest: object) -> object:
        return append(self, timestamp=int(time.time() * 1000) if timestamp is None else timestamp, **rest)

    BatchBuilder.append = dated
