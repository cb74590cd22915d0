"""Which models a call may go to, in order: by its kind, or by the model that the goal or the plan names."""

from agents.configuration.values import DEFAULT, Configuration, Kind, ModelSettings
from agents.ports import ModelError

NAMED = 20
"""Models that an error names at most."""


class Routes:
    """The chains of models of a configuration.

    A model that a goal or a plan names takes the place of the first of its kind's chain; what the kind
    falls back on stays the same. It must be configured, or the configuration must be open.

    Another attempt at the same work turns the chain by a place: its first choice is the model after the one
    that the attempt before began with. The others stand behind it, in their order.
    """

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration

    def kind(self, name: str) -> Kind:
        """The kind of this name, as the configuration has it."""
        return self._configuration.kind(name)

    def chain(self, kind: Kind, named: str | None, fallback: int = 0) -> tuple[ModelSettings, ...]:
        """The models for a call, the first choice first.

        Args:
            named: By the goal or the plan.
            fallback: Places by which the chain is turned.

        Raises:
            ModelError: ``no_such_model``; the model named is not one that may be.
        """
        chain = self._chain(kind, named)
        first = fallback % len(chain)
        return (*chain[first:], *chain[:first])

    def _chain(self, kind: Kind, named: str | None) -> tuple[ModelSettings, ...]:
        names = kind.models or self._configuration.kind(DEFAULT).models
        models = self._configuration.models
        if named is None or named == names[0]:
            return tuple(models[name] for name in names)
        first = models.get(named) or self._open(named)
        return (first, *(models[name] for name in names[1:] if name != named))

    def _open(self, named: str) -> ModelSettings:
        """A model that nobody configured, on the only endpoint."""
        if self._configuration.open_models:
            (endpoint,) = self._configuration.endpoints
            return ModelSettings(name=named, endpoint=endpoint, id=named)
        there = sorted(self._configuration.models)
        names = ", ".join(there[:NAMED]) + (", ..." if len(there) > NAMED else "")
        where = f" in {self._configuration.path}" if self._configuration.path else ""
        error = ModelError(
            "no_such_model", f"there is no model {named[:200]!r}{where}; name one of {names}", retry=False
        )
        error.model, error.decision = named[:200], "give_up"
        raise error
