"""A tool that does nothing, for measuring what everything around it costs."""


async def noop() -> str:
    """Do nothing and return "ok"."""
    return "ok"
