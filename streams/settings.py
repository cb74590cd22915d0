"""Every setting of a process, as one frozen value. Only the command line reads the environment."""

from dataclasses import dataclass, field

from agents.configuration.values import Configuration, one_endpoint
from streams.access import Access


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a process works.

    Attributes:
        brokers: Kafka bootstrap servers, ``host:port`` separated by commas.
        access: How the clients prove to Kafka who they are.
        prefix: Stands before every topic, group and transactional id.
        lanes: Partitions of ``goals``, ``job-events``, ``subtasks``, ``transcripts`` and ``jobs``;
            fixed for the life of a system.
        concurrency: Sub-agents running at once over all workers; a lane has its share of it.
        window: Sub-tasks released and unfinished at once per partition of ``job-events``.
        worker_name: A stable name makes the process a static member of its groups: after a kill
            it comes back within *session_timeout_s* without a rebalance. Empty: a dynamic member.
        session_timeout_s: Seconds of silence after which a worker's partitions move.
        heartbeat_s: Seconds between two heartbeats.
        overdue_grace_s: Seconds the orchestrator waits beyond an attempt's timeout for the
            lane's own word.
        drain_s: Seconds that running sub-agents get when a worker is told to stop.
        stall_s: Seconds without progress after which a lane with work counts as stalled.
        stage_s: Seconds that a batch which asks for nothing may wait for one that does.
        batch: Events of one transaction at most.
        base_url: The model endpoint, where there is no file that says more.
        api_key: Its key; never printed.
        model: The model to use where goal and plan name none.
        entry_key: ``NAME:SECRET``, which goals are signed with that this process sends; never printed.
        configured: What ``anabranch.toml`` says of the agents' side; it holds *base_url*, *api_key* and
            *model* where it leaves them out. None: there is no file.
    """

    brokers: str = "127.0.0.1:9092"
    access: Access = field(default_factory=Access)
    prefix: str = "anabranch."
    lanes: int = 8
    concurrency: int = 100
    window: int = 256
    worker_name: str = ""
    session_timeout_s: float = 6.0
    heartbeat_s: float = 1.0
    overdue_grace_s: float = 5.0
    drain_s: float = 10.0
    stall_s: float = 60.0
    stage_s: float = 0.1
    batch: int = 500
    base_url: str = ""
    api_key: str = field(default="", repr=False)
    model: str = ""
    entry_key: str = field(default="", repr=False)
    configured: Configuration | None = field(default=None, repr=False)

    @property
    def configuration(self) -> Configuration:
        """What the agents have: by the file, else one endpoint."""
        if self.configured is not None:
            return self.configured
        return one_endpoint(base_url=self.base_url, api_key=self.api_key, model=self.model)

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must never be shown, wherever it turns up."""
        of_agents = self.configured.secrets if self.configured is not None else ()
        signing = self.entry_key.partition(":")[2]
        return tuple(dict.fromkeys(filter(None, (self.api_key, signing, *of_agents, *self.access.secrets))))
