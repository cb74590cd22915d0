"""Commands to the lanes: the records of ``subtasks``."""

from typing import get_args

from streams.core.commands import Command
from streams.log import Record
from streams.wire.envelope import Kinds

COMMANDS: Kinds[Command] = Kinds(get_args(Command), depth=120, placed=False)
"""A value of an event stands a few levels deeper in a command: hence the greater depth."""


def read_command(record: Record) -> Command:
    """The command of a record.

    Raises:
        Unreadable: the record is no command that this version knows.
    """
    return COMMANDS.read(record)


def write_command(command: Command) -> bytes:
    """The JSON of a command.

    Raises:
        Unwritable: a part of it has no JSON.
    """
    return COMMANDS.write(command)
