"""Reading short configurations in tests."""

from textwrap import dedent

from agents.configuration.problems import BadConfiguration
from agents.configuration.reading import read_configuration
from agents.configuration.values import Configuration


def read(text: str, **environment: str) -> Configuration:
    """The configuration of an indented text."""
    return read_configuration(dedent(text).lstrip("\n"), path="anabranch.toml", environment=environment)


def problems(text: str, **environment: str) -> list[str]:
    """What is wrong with it, without the name of the file: ``7: what; what to do``."""
    try:
        read(text, **environment)
    except BadConfiguration as bad:
        return [str(problem).removeprefix("anabranch.toml:") for problem in bad.problems]
    return []
