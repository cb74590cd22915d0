"""Have Kafka ready before the tests' clocks run: ``python infra/install_kafka.py DIRECTORY``."""

import asyncio
import sys
from pathlib import Path

from streams import broker

asyncio.run(broker.install(Path(sys.argv[1])))
