"""What can go wrong with the embedded Kafka, for a person to read."""


class BrokerFailed(Exception):
    """The embedded Kafka could not be made, started or stopped; the message says what to do."""
