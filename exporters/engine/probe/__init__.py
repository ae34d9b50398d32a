"""The probe: runs inside vLLM, by the entry point ``vllm.general_plugins``.

Standard library and vLLM only. It never raises into the engine.
"""

__all__ = ["register"]


def register() -> None:
    """Attach to this process of vLLM: called by its plugin loader, in each process, early."""
    try:
        from vramscope.exporters.engine.probe.attach import install

        install()
    except Exception as error:  # noqa: BLE001  # the engine never dies of its telemetry
        import logging

        logging.getLogger("vllm.vramscope").warning("vramscope: no probe: %s", error)
