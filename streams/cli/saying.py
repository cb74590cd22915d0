"""``anabranch approve``, ``reject`` and ``cancel``: what a person says to a job."""

from typing import Annotated, Any

import typer

from streams.cli.exits import Exit, Stop, run
from streams.cli.options import Brokers, Prefix
from streams.cli.watch import named

JobArgument = Annotated[
    str, typer.Argument(help="The job, tenant/id; of the tenant `default` the id alone will do.")
]
What = Annotated[
    str | None,
    typer.Option(
        help="Which of the things that wait: plan, tools or answer; all if none.", show_default=False
    ),
]
Task = Annotated[
    str | None, typer.Option(help="The sub-task whose tool call is meant; all if none.", show_default=False)
]
Reason = Annotated[str, typer.Option(help="Why; it stands on the log and in the answer.", show_default=False)]
By = Annotated[
    str, typer.Option(help="Who says so, where no key does; marked as claimed.", show_default=False)
]


def approve(
    job: JobArgument,
    what: What = None,
    task: Task = None,
    reason: Reason = "",
    by: By = "",
    brokers: Brokers = None,
    prefix: Prefix = None,
) -> None:
    """Let a job go on that waits for a person: for its plan, for calls of tools, or for its answer.

    `anabranch waiting` shows what waits. What does not wait yet is not approved by this.

    [bold]Examples[/bold]

    anabranch approve acme/order-17

    anabranch approve acme/order-17 --what tools --task send-offer --reason "price checked"
    """
    run(_say("approve", job, brokers, prefix, what=what, task=task, reason=reason, by=by))


def reject(
    job: JobArgument,
    what: What = None,
    task: Task = None,
    reason: Reason = "",
    by: By = "",
    brokers: Brokers = None,
    prefix: Prefix = None,
) -> None:
    """Do not let a job go on that waits for a person: it ends, and its answer says why.

    [bold]Example[/bold]

    anabranch reject acme/order-17 --reason "too dear"
    """
    run(_say("reject", job, brokers, prefix, what=what, task=task, reason=reason, by=by))


def cancel(
    job: JobArgument,
    reason: Reason = "",
    by: By = "",
    brokers: Brokers = None,
    prefix: Prefix = None,
) -> None:
    """End a job, whatever it is at: its attempts are stopped, and it is answered `cancelled`.

    [bold]Example[/bold]

    anabranch cancel acme/order-17 --reason "ordered twice"
    """
    run(_say("cancel", job, brokers, prefix, reason=reason, by=by))


def sent(verb: str, job: str) -> str:
    """What a person reads once the log has it: nobody tells the command what became of it."""
    if verb == "cancel":
        return f"sent to {job}: cancel; `anabranch watch {job}` shows its end"
    return f"sent to {job}: {verb}, for what waits when it arrives; `anabranch waiting` shows what still does"


UNSIGNED = (
    "it is not signed: where `[entry]` asks for that, it is in `anabranch dead-letters list`, with the reason"
)


async def _say(verb: str, job: str, brokers: str | None, prefix: str | None, **fields: Any) -> None:
    from streams.cli.environment import settings
    from streams.cli.output import console, say
    from streams.cli.quiet import quiet
    from streams.client import Swarm
    from streams.wire.outside import write_word

    quiet()
    job = named(job)
    try:
        write_word(verb, job, **fields)  # before anybody is asked for
    except ValueError as error:
        raise Stop(str(error), Exit.USAGE) from None
    ours = settings(brokers=brokers, prefix=prefix)
    swarm = Swarm(ours.brokers, prefix=ours.prefix, access=ours.access, entry_key=ours.entry_key)
    async with swarm:
        await getattr(swarm, verb)(job, **fields)
    notes = console(stderr=True)
    say(notes, sent(verb, job))
    if not ours.entry_key:
        say(notes, UNSIGNED)
