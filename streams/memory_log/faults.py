"""What may go wrong on the log in memory."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """Faults that a cluster brings about by its seed. None by default.

    Attributes:
        delay_s: Longest time in seconds that a request, a reply or a transaction marker is under
            way; each takes a random part of it.
        lost_sends: Share of sends (0 to 1) that never land; their future raises LogUnavailable.
        lost_replies: Share of sends that land although their future raises LogUnavailable.
        unknown_commits: Share of commits that raise LogUnavailable; half of them land.
        short_batches: Share of batches that hold fewer records than there are.
        outages: Spans in seconds since the cluster began in which the broker is away:
            ``((from, to), ...)``.
    """

    delay_s: float = 0.0
    lost_sends: float = 0.0
    lost_replies: float = 0.0
    unknown_commits: float = 0.0
    short_batches: float = 0.0
    outages: tuple[tuple[float, float], ...] = ()


NO_FAULTS = Faults()
