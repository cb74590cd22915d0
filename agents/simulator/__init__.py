"""A simulated model behind a real HTTP endpoint that speaks the OpenAI chat API.

For trying Anabranch without a key, for tests, and for benchmarks. Always labelled: the response
header ``x-anabranch-simulated: 1``, the model ``simulated``, the system fingerprint
``anabranch-simulated``, and ``(simulated)`` before every text it writes. It extracts its answers
from what the request holds and never invents any. What a goal can make it do is in
:mod:`agents.simulator.directives`.

    simulator = await start(Behaviour(latency=parse_latency("p50=0.38,p99=1.12")))
    client = AsyncOpenAI(base_url=simulator.url, api_key="any")
    ...
    await simulator.close()
"""

from agents.simulator.behaviour import (
    MODEL,
    BadBehaviour,
    Behaviour,
    FailureKind,
    Fixed,
    Latency,
    LogNormal,
    parse_failures,
    parse_latency,
)
from agents.simulator.counters import Call, Counters
from agents.simulator.responses import LABEL_HEADER
from agents.simulator.server import CALL_ID_HEADER, Simulator, serve, start

__all__ = [
    "CALL_ID_HEADER",
    "LABEL_HEADER",
    "MODEL",
    "BadBehaviour",
    "Behaviour",
    "Call",
    "Counters",
    "FailureKind",
    "Fixed",
    "Latency",
    "LogNormal",
    "Simulator",
    "parse_failures",
    "parse_latency",
    "serve",
    "start",
]
