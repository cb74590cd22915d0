"""Lives: the real parts on the log in memory, broken at the worst moments, by a seed.

A life is a :class:`~streams.chaos.scenarios.Scenario`, derived from a seed or written by hand. It
runs orchestrator, intake, lanes, journal and agents as they are; in memory are the log, the model
endpoint and the tools. Time is virtual. What happens follows from the scenario alone, so that a life
that broke the promise can be lived again, and made smaller until only what broke it is left.

No part looks at a wall clock: time is the broker's append time and the loop's monotonic one. So
clocks set apart cannot be told from clocks that agree, and no life sets them apart.
"""
