"""Lets models that see be built without torchvision, which the environment leaves out.

Their modules import image transforms that only a request with an image would call.
"""

import sys
from unittest.mock import MagicMock

from vllm.model_executor.models import registry

__all__ = ["do_without_torchvision"]

IMPORTED = ("torchvision", "torchvision.io", "torchvision.transforms", "torchvision.transforms.v2")


def do_without_torchvision() -> None:
    """Stand in for torchvision in this process, and let vLLM inspect models in it, not outside."""
    sys.modules.update({name: MagicMock(__spec__=MagicMock()) for name in IMPORTED})
    registry._run_in_subprocess = lambda look_up: look_up()  # noqa: SLF001
