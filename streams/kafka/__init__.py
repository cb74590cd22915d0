"""The log on Kafka: aiokafka for groups, transactions and reading, Faust for the stream agents."""
