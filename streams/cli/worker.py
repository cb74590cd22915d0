"""``anabranch worker``: runs the parts of a system on the partitions it is given."""

import asyncio
from typing import Annotated

import typer

from streams.cli.exits import Exit, Stop, run
from streams.cli.options import AsJson, Brokers, Config, Lanes, Prefix
from streams.settings import Settings


def worker(
    brokers: Brokers = None,
    prefix: Prefix = None,
    lanes: Lanes = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Sub-agents at once over all workers. [dim]\\[ANABRANCH_CONCURRENCY, or 100][/dim]",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            help="A stable name, to be back after a crash at once. [dim]\\[ANABRANCH_WORKER_NAME][/dim]",
            show_default=False,
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="Model where goals name none. [dim]\\[ANABRANCH_MODEL, or the endpoint's only one][/dim]",
            show_default=False,
        ),
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option(
            help="The one model endpoint, with /v1, and no file. "
            "[dim]\\[OPENAI_BASE_URL, or OpenAI's own][/dim]",
            show_default=False,
        ),
    ] = None,
    config: Config = None,
    wait: Annotated[
        float, typer.Option(min=0, help="Seconds to wait for Kafka and the model endpoint at the start.")
    ] = 30.0,
    level: Annotated[str, typer.Option("--log-level", help="DEBUG, INFO, WARNING or ERROR.")] = "INFO",
    as_json: AsJson = False,
) -> None:
    """Run a worker: intake, orchestrator and lanes of the partitions it is given, until it is told to stop.

    Start as many as you like, anywhere: they share the partitions, and take over from one another.
    SIGTERM or Ctrl-C lets running sub-agents finish; a second one ends at once. Keys come from
    environment variables only. Logs go to stderr, as JSON lines unless that is a terminal.

    [bold]Examples[/bold]

    OPENAI_API_KEY=... ANABRANCH_MODEL=kimi-k2.6 OPENAI_BASE_URL=https://api.moonshot.ai/v1 anabranch worker

    anabranch worker --name worker-0 --concurrency 200 --brokers kafka-1:9092,kafka-2:9092
    """
    from streams.cli.environment import configured, settings

    async def work() -> None:
        ours = settings(
            brokers=brokers,
            prefix=prefix,
            lanes=lanes,
            concurrency=concurrency,
            worker_name=name,
            model=model,
            base_url=base_url,
        )
        ours = configured(ours, config=config, base_url=base_url, model=model)
        await _work(ours, wait, level.upper(), as_json=as_json)

    run(work(), uvloop=True)


async def _work(settings: Settings, wait: float, level: str, *, as_json: bool) -> None:
    from streams import app
    from streams.cli.stopping import stopped_by_signal
    from streams.cli.worker_start import ready
    from streams.logging import configure, hide_in_threads

    if level not in {"DEBUG", "INFO", "WARNING", "ERROR"}:
        raise Stop(f"--log-level {level} is none of DEBUG, INFO, WARNING, ERROR", Exit.USAGE)
    configure(secrets=settings.secrets, level=level, json=as_json or None)
    hide_in_threads()
    stop = stopped_by_signal()
    starting = asyncio.ensure_future(ready(settings, wait_s=wait))
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if stop.is_set():
        starting.cancel()
        return
    await app.work(await starting, stop=stop)
