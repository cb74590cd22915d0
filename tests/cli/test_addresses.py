"""An endpoint's address that cannot be asked ends a command with a line that says so."""

import pytest

from agents.configuration.problems import BadConfiguration
from agents.configuration.reading import read_configuration
from streams.cli.environment import settings
from streams.cli.exits import Exit, Stop

NO_ADDRESSES = ("http://[::1", "http://a\x00b", "http://☃.test/v1")


@pytest.mark.parametrize("address", NO_ADDRESSES)
def test_no_address(address: str) -> None:
    """In the environment as in the file: before, one left the program as a traceback."""
    with pytest.raises(Stop, match=r"OPENAI_BASE_URL is .*no address") as stopped:
        settings({"OPENAI_BASE_URL": address})
    assert stopped.value.code is Exit.USAGE
    file = '[endpoints.a]\nbase_url = "' + address.replace("\x00", "\\u0000") + '"\n'
    with pytest.raises(BadConfiguration, match=r"anabranch\.toml:2"):
        read_configuration(file, path="anabranch.toml", environment={})


def test_a_password_is_not_shown() -> None:
    with pytest.raises(Stop, match="a user or a password") as stopped:
        settings({"OPENAI_BASE_URL": "https://me:hidden@example.org/v1"})
    assert "hidden" not in str(stopped.value)


def test_addresses() -> None:
    for address in ("http://127.0.0.1:8000/v1", "https://api.moonshot.ai/v1", "http://[::1]:8000/v1"):
        assert settings({"OPENAI_BASE_URL": address}).base_url == address
