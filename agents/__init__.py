"""The agents' side: planner, sub-agents and synthesis on models and tools; no Kafka in it."""
