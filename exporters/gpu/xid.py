"""What an XID error code asks for, after NVIDIA's XID catalog (docs.nvidia.com/deploy/xid-errors).

NVIDIA names the immediate action of each code for the GPUs of each generation; the classes here
group them by what an operator does. The catalog is refined with each driver: the driver's own
``Recovery Action`` (XID 154), where logged, goes before this table.
"""

from typing import Literal

__all__ = ["ANNOUNCED_XIDS", "XID_CLASSES", "XidClass", "xid_class"]

XidClass = Literal[
    "application", "watch", "reset_gpu", "restart_node", "check_link", "check_hardware", "unknown"
]
"""``application``: restart it, the GPU is well; ``watch``: nothing now, or a maintenance window;
``reset_gpu``: drain it and reset it; ``restart_node``: drain and restart the host;
``check_link``: NVLink or NVSwitch: look at the fabric; ``check_hardware``: mechanical, power or a
failed part: run field diagnostics or replace."""

XID_CLASSES: dict[int, XidClass] = {
    8: "application",  # the GPU stopped processing a channel: time-out
    11: "application",  # invalid or corrupted push buffer stream
    13: "application",  # graphics engine exception: out-of-range access, illegal instruction
    31: "application",  # MMU fault: illegal address
    32: "application",  # invalid or corrupted push buffer stream, by the DMA controller
    39: "application",  # copy engine exception (0)
    40: "application",  # copy engine exception (1)
    41: "application",  # copy engine exception (2)
    42: "application",  # video processor exception
    43: "application",  # GPU stopped processing: a channel was reset
    44: "reset_gpu",  # graphics engine fault during context switch
    45: "application",  # preemptive cleanup: channels of a process that ended or met another error
    46: "reset_gpu",  # GPU stopped processing: timeout of the GPU
    48: "reset_gpu",  # double-bit ECC error (seldom alone: 63 or 64 tell how it went on)
    54: "check_hardware",  # auxiliary power is not connected
    61: "reset_gpu",  # internal microcontroller breakpoint
    62: "reset_gpu",  # internal microcontroller halt
    63: "watch",  # row remap or page retirement recorded: takes effect at the next reset
    64: "reset_gpu",  # row remap or page retirement failed to be recorded
    68: "application",  # video processor exception
    69: "application",  # graphics engine class error
    74: "check_link",  # NVLink error
    79: "restart_node",  # the GPU has fallen off the bus
    92: "watch",  # high rate of single-bit ECC errors
    94: "application",  # contained memory error: only the applications it names are hit
    95: "reset_gpu",  # uncontained memory error
    109: "reset_gpu",  # context switch timeout
    110: "reset_gpu",  # security fault
    119: "reset_gpu",  # GSP RPC timeout
    120: "reset_gpu",  # GSP error
    121: "watch",  # C2C link corrected error
    123: "reset_gpu",  # power management unit: SPI RPC timeout
    136: "check_link",  # NVLink training failed
    137: "check_link",  # NVLink privileged error: fault from a remote GPU
    140: "reset_gpu",  # unrecovered ECC error
    143: "reset_gpu",  # GPU initialisation error
    144: "check_link",  # NVLink: SAW error
    145: "check_link",  # NVLink: RLW error
    146: "check_link",  # NVLink: TLW error
    147: "check_link",  # NVLink: TREX error
    148: "check_link",  # NVLink: NVLPW control error
    149: "check_link",  # NVLink: NETIR error
    150: "check_link",  # NVLink: MSE error
    154: "watch",  # the recovery action has changed: read it in the message
    155: "check_link",  # NVLink: software-defined error
    156: "watch",  # resource retirement event
    157: "check_hardware",  # resource retirement failure
}
"""Class by code; the comment is NVIDIA's meaning. A code whose action is not documented, or is to
ask NVIDIA, is left out: ``unknown``."""

ANNOUNCED_XIDS = (13, 31, 43, 45, 48, 63, 64, 74, 79, 94, 95, 119)
"""Codes whose counters are published at 0 for each GPU, so that a first event is an increase."""


def xid_class(xid: int) -> XidClass:
    """Return what the code asks for.

    >>> xid_class(79)
    'restart_node'
    >>> xid_class(4711)
    'unknown'
    """
    return XID_CLASSES.get(xid, "unknown")
