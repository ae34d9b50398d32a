"""The one exception family: what the command line turns into a line and an exit code."""

__all__ = ["MissingExtraError", "SourceUnavailableError", "VramscopeError"]


class VramscopeError(Exception):
    """Something a person can act on. The message says where, what was seen, what is wanted."""


class SourceUnavailableError(VramscopeError):
    """A source can't be read now; the others go on."""


class MissingExtraError(VramscopeError):
    """A command needs packages of an extra that is not installed."""

    def __init__(self, command: str, extra: str, module: str) -> None:
        super().__init__(
            f"vramscope {command}: Python package {module!r} is not installed: "
            f"pip install 'vramscope[{extra}]'"
        )
