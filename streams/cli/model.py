"""``anabranch model``: the simulated model endpoint, alone."""

from typing import TYPE_CHECKING, Annotated

import typer

from streams.cli.exits import Exit, Stop, run
from streams.cli.options import AsJson
from streams.cli.output import print_json

if TYPE_CHECKING:
    from agents.simulator import Behaviour

PORT = 8765


def model(
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="Where it listens; 0 takes a free port.")
    ] = PORT,
    host: Annotated[str, typer.Option(help="Which address it listens on.")] = "127.0.0.1",
    latency: Annotated[
        str, typer.Option(help="Seconds a call takes: 0.3, or log-normal as p50=0.38,p99=1.12.")
    ] = "0",
    fail: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND=RATE",
            help="Share of calls that fail so: rate_limited, overloaded, server_error, timeout, cut, "
            "truncated, malformed, stalled, unfinished. May be given several times.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Its chance comes from this and the request alone.")] = 0,
    rpm: Annotated[int | None, typer.Option(min=1, help="Requests a minute that the account allows.")] = None,
    tpm: Annotated[int | None, typer.Option(min=1, help="Tokens a minute that the account allows.")] = None,
    concurrency: Annotated[int | None, typer.Option(min=1, help="Calls at once that it allows.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run a simulated model endpoint that speaks the OpenAI chat API, until it is interrupted.

    It needs no key, is deterministic, and is labelled as simulated in all it says. It plans over a
    goal's input, uses tools, and answers from what they return; it invents nothing.

    [bold]Examples[/bold]

    anabranch model

    anabranch model --latency p50=0.38,p99=1.12 --fail rate_limited=0.05 --fail timeout=0.01

    anabranch model --port 0 --rpm 500 --tpm 3000000 --concurrency 100 --json
    """
    from agents.simulator import Behaviour, parse_failures, parse_latency

    async def serve() -> None:
        behaviour = Behaviour(
            seed=seed,
            latency=parse_latency(latency),
            failures=parse_failures(fail or []),
            requests_per_minute=rpm,
            tokens_per_minute=tpm,
            concurrency=concurrency,
        )
        await _serve(behaviour, host, port, as_json=as_json)

    run(serve(), uvloop=True)


async def _serve(behaviour: "Behaviour", host: str, port: int, *, as_json: bool) -> None:
    from agents.simulator import start
    from streams.cli.stopping import stopped_by_signal

    stop = stopped_by_signal()
    try:
        simulator = await start(behaviour, host=host, port=port)
    except OSError as error:
        reason = f"{host}:{port} cannot be listened on ({error.strerror}): choose another --port"
        raise Stop(reason, Exit.USAGE) from None
    try:
        if as_json:
            print_json({"url": simulator.url, "simulated": True})
        else:
            typer.echo(f"A simulated model listens. For workers: export OPENAI_BASE_URL={simulator.url}")
        await stop.wait()
    finally:
        await simulator.close()
