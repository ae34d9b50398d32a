"""What can go wrong with engines and listeners, as lines a person can act on."""

from vramscope.exporters.errors import VramscopeError

__all__ = ["AddressInUseError", "ConfigError", "EngineStartError", "ProcessLeftError"]


class ConfigError(VramscopeError):
    """The configuration file can't be used; the message has one line a mistake."""


class AddressInUseError(VramscopeError):
    """A listener's address, or an engine's port, is taken or can't be bound."""


class EngineStartError(VramscopeError):
    """An engine died, or did not answer its health check in time, before it was ready."""


class ProcessLeftError(VramscopeError):
    """Processes of an engine outlived SIGKILL (they hang in the kernel)."""
