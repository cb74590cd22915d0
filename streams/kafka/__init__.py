"""The log on Kafka: aiokafka for groups, transactions and reading, Faust for the stream agents."""

from streams.kafka import header_names as header_names
