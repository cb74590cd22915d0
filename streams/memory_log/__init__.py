"""The log in memory: Kafka's rules on virtual time and a seed, for tests and simulation.

A :class:`MemoryCluster` is the broker; :meth:`MemoryCluster.connect` gives a
:class:`MemoryLog`, one process's connection to it. What the model keeps of Kafka, so that code
which is right here is right there (``tests/streams/log_contract.py`` runs on both):

- transactions under an identity with epochs, so that a newer producer fences an older one;
  control records where transactions end, so offsets have gaps; readers see nothing at or behind
  the first record of an open transaction of the partition;
- consumer groups with generations: everyone lets go before anyone is given, a dead member's
  partitions move after the session timeout, commits of an older generation have no effect;
- replies that get lost, commits of unknown outcome, records refused, brokers that go away.

All time is the event loop's, all chance comes from the cluster's seed, so that a run on a loop
with virtual time is repeatable by its seed.
"""

from streams.memory_log.cluster import MemoryCluster
from streams.memory_log.connection import Limits, MemoryLog
from streams.memory_log.faults import NO_FAULTS, Faults

__all__ = ["NO_FAULTS", "Faults", "Limits", "MemoryCluster", "MemoryLog"]
