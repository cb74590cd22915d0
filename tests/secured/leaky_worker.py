"""A worker with tools that tell secrets, each in another way."""

import os

from agents import crew
from agents.tools.local import LocalTools, local_tool
from streams.cli import main


def tell_all() -> dict[str, object]:
    """Give what this process was given, and what a server says of a request."""
    return {
        "environment": {
            name: value for name, value in os.environ.items() if name.startswith(("ANABRANCH_", "OPENAI_"))
        },
        "headers": {
            "Authorization": f"Bearer {os.environ['LEAK_BEARER']}",
            "Cookie": os.environ["LEAK_COOKIE"],
        },
        "said": [f"401 for Authorization: Bearer {os.environ['LEAK_BEARER']} at {os.environ['LEAK_URL']}"],
        "key of another provider": os.environ["LEAK_PROVIDER_KEY"],
    }


def break_down() -> None:
    """Fail, with the key in the words, in the middle and where they are cut."""
    key = os.environ["OPENAI_API_KEY"]
    raise ValueError(f"{key} is not taken; {'x' * 1950}{key}")


def leaky_worker() -> None:
    """Be ``anabranch``, with these tools in place of the shipped ones."""
    # In place of the name that it imports.
    vars(crew)["local_tools"] = lambda _: LocalTools([local_tool(tell_all), local_tool(break_down)])
    main()
