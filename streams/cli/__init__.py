"""The command line: ``anabranch``. Each file is one group of commands; heavy imports stand inside them.

Exit codes are those of :class:`streams.cli.exits.Exit`.
"""

import sys
import traceback

import typer

from streams.cli import (
    acls,
    answers,
    broker,
    chaos,
    cost,
    dead_letters,
    demo,
    doctor,
    held,
    model,
    replay,
    run_agent,
    saying,
    submit,
    topics,
    watch,
    worker,
)
from streams.cli.exits import CODES

__all__ = ["app", "main"]

HELP = f"""Goals in, one answer each out: an agent swarm on Kafka.

A goal is planned into sub-tasks, sub-agents work on them side by side, and their results become
one answer, whatever crashes meanwhile.

[bold]From nothing to an answer:[/bold]

  anabranch broker start                   a real Kafka on this machine
  anabranch topics create
  anabranch model &                        a simulated model, where there is no key
  export OPENAI_BASE_URL=http://127.0.0.1:8765/v1
  anabranch worker &
  anabranch submit "Compare Kafka and NATS" --wait

[bold]Settings:[/bold] flags, or else ANABRANCH_BROKERS, ANABRANCH_PREFIX, ANABRANCH_LANES,
ANABRANCH_CONCURRENCY, ANABRANCH_WORKER_NAME, ANABRANCH_WINDOW, ANABRANCH_SESSION_TIMEOUT_S,
ANABRANCH_HEARTBEAT_S, ANABRANCH_DRAIN_S, ANABRANCH_STALL_S, ANABRANCH_MODEL, OPENAI_BASE_URL,
OPENAI_API_KEY, ANABRANCH_ENTRY_KEY. For Kafka with TLS and SASL: ANABRANCH_KAFKA_* (docs/security.md). Many
endpoints, models, kinds of sub-tasks, tool servers and tenants: anabranch.toml, or ANABRANCH_CONFIG
(docs/configuration.md).

[bold]Exit codes:[/bold] {CODES}

With --json a command prints one JSON object a line, and nothing else, to stdout.
"""

app = typer.Typer(
    name="anabranch",
    help=HELP,
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,  # they would print the values of variables, a key among them
)
app.command()(demo.demo)
app.add_typer(broker.app, name="broker")
app.add_typer(topics.app, name="topics")
app.command()(worker.worker)
app.command()(model.model)
app.command()(submit.submit)
app.command("run-agent")(run_agent.run_agent)
app.command()(watch.watch)
app.command()(held.waiting)
app.command()(saying.approve)
app.command()(saying.reject)
app.command()(saying.cancel)
app.command()(answers.answers)
app.add_typer(dead_letters.app, name="dead-letters")
app.command()(doctor.doctor)
app.command()(acls.acls)
app.command()(replay.replay)
app.command()(replay.export)
app.command()(cost.cost)
app.add_typer(chaos.app, name="chaos")


def main() -> None:
    """The entry point of ``anabranch``."""
    try:
        app()
    except Exception as error:  # noqa: BLE001 - Python would write it with all that stands in it
        from streams.logging import hide

        sys.stderr.write(hide("".join(traceback.format_exception(error))))
        sys.exit(1)
