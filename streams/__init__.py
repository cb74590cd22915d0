"""Anabranch on Kafka: goals in, one answer each out."""
