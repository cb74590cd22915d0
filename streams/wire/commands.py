"""Commands to the lanes: the records of ``subtasks``."""

from typing import TypeAlias, get_args

from streams.core.commands import Command, StopAttempt
from streams.log import Record
from streams.wire.envelope import Kinds

Order: TypeAlias = Command | StopAttempt
"""What a lane is told: to run an attempt, or to stop one."""

COMMANDS: Kinds[Order] = Kinds(get_args(Order), depth=120, placed=False)
"""A value of an event stands a few levels deeper in a command: hence the greater depth."""


def read_command(record: Record) -> Order:
    """The command of a record.

    Raises:
        Unreadable: the record is no command that this version knows.
    """
    return COMMANDS.read(record)


def write_command(command: Order) -> bytes:
    """The JSON of a command.

    Raises:
        Unwritable: a part of it has no JSON.
    """
    return COMMANDS.write(command)
