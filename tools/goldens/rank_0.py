"""Rank 0 of a tensor-parallel group whose other ranks don't exist.

Building a model asks of its group only ranks, sizes and a few exchanges whose answers rank 0 can
give itself, so torch's fake process group will do.
"""

from typing import Any

import torch.distributed
import vllm.distributed.parallel_state as parallel_state
from torch.testing._internal.distributed.fake_pg import FakeStore
from vllm.distributed.device_communicators.cpu_communicator import CpuCommunicator

__all__ = ["be_rank_0"]


def be_rank_0(tensor_parallel: int) -> None:
    """Set vLLM's parallel state as in rank 0 of ``tensor_parallel``; call once, in its config."""
    new_group = torch.distributed.new_group
    new_parallel_group = parallel_state.init_model_parallel_group

    def new_fake_group(*args: Any, **options: Any) -> Any:
        return new_group(*args, **{**options, "backend": "fake"})

    def new_quiet_group(*args: Any, **options: Any) -> Any:
        return new_parallel_group(*args, **{**options, "use_message_queue_broadcaster": False})

    # What would talk to the other ranks: shared memory, message queues, gloo's own groups.
    torch.distributed.new_group = new_fake_group
    parallel_state.init_model_parallel_group = new_quiet_group
    parallel_state.in_the_same_node_as = lambda *_args, **_options: [False] * tensor_parallel
    CpuCommunicator._all_group_ranks_share_shm_group_name = lambda _self: False  # noqa: SLF001

    torch.distributed.init_process_group(
        "fake", store=FakeStore(), rank=0, world_size=tensor_parallel
    )
    parallel_state.init_distributed_environment(tensor_parallel, 0, "env://", 0, "fake")
    parallel_state.ensure_model_parallel_initialized(tensor_parallel, 1, backend="fake")
