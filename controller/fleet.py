"""The engines as the front door sees them: who serves what, where, and who is ready."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vramscope.controller.config import EngineConfig

__all__ = ["Fleet", "Member"]


@dataclass(slots=True)
class Member:
    """One engine.

    Attributes:
        name: its stable id.
        model: the name it serves its model under.
        adapters: names of the LoRA adapters it can load.
        port: its port on 127.0.0.1.
        ready: whether it lives and answers its health check.
    """

    name: str
    model: str
    adapters: frozenset[str]
    port: int
    ready: bool = False

    @property
    def url(self) -> str:
        """Where it answers, without a trailing slash."""
        return f"http://127.0.0.1:{self.port}"


class Fleet:
    """All engines of the configuration. ``ready`` changes, the rest does not.

    Args:
        engines: the engines' settings.
        ports: the port of each, in the same order.
    """

    def __init__(self, engines: Sequence[EngineConfig], ports: Sequence[int]) -> None:
        self._members = {
            engine.name: Member(engine.name, engine.served_name, frozenset(engine.adapters), port)
            for engine, port in zip(engines, ports, strict=True)
        }

    def __iter__(self) -> Iterator[Member]:
        return iter(self._members.values())

    def __getitem__(self, name: str) -> Member:
        return self._members[name]

    @property
    def models(self) -> dict[str, str | None]:
        """Every name a request may ask for, with the base model where it is an adapter."""
        names: dict[str, str | None] = {member.model: None for member in self}
        for member in self:
            names.update(dict.fromkeys(sorted(member.adapters), member.model))
        return names

    def is_adapter(self, model: str) -> bool:
        """Whether a name is an adapter's."""
        return any(model in member.adapters for member in self)

    def ready_for(self, model: str) -> list[Member]:
        """Return the ready engines that serve a model or adapter, in the file's order."""
        return [
            member
            for member in self
            if member.ready and (model == member.model or model in member.adapters)
        ]
