"""A disk that is full, for one process: what it writes to files fails, as long as that lasts.

By the process's limit on the size of files it may write (setrlimit(2), RLIMIT_FSIZE). Python ignores
the signal that goes with it, so a write fails with ``EFBIG`` where a full disk gives ``ENOSPC``: both
are an ``OSError`` out of the same calls. Sockets and pipes are not concerned.
"""

import resource


def fill(process: int = 0) -> None:
    """From now on this process cannot write to files any more; 0 is our own.

    Raises:
        ProcessLookupError: there is no such process.
        PermissionError: it is another user's.
    """
    _, hard = resource.prlimit(process, resource.RLIMIT_FSIZE)
    resource.prlimit(process, resource.RLIMIT_FSIZE, (0, hard))


def clear(process: int = 0) -> None:
    """It can again.

    Raises:
        ProcessLookupError, PermissionError: as of :func:`fill`.
    """
    _, hard = resource.prlimit(process, resource.RLIMIT_FSIZE)
    resource.prlimit(process, resource.RLIMIT_FSIZE, (hard, hard))
