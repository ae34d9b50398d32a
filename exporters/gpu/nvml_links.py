"""The NVLinks of one GPU by NVML: who is at the other end, state, speed, bytes, errors."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pynvml  # type: ignore[import-untyped]  # one module, without types

from vramscope.exporters.gpu.nvml_calls import NvmlCalls, bus_id
from vramscope.exporters.gpu.nvml_fields import ALL_LINKS, Field, FieldReader
from vramscope.exporters.signals.gpu import LinkSample

__all__ = ["NVLINK_FIELDS", "NvLinkSums", "NvLinks", "nvlink_bytes"]

KIB = 1024.0
DATA_TX, DATA_RX = 138, 139  # cumulative KiB, payload
BYTES_TX, BYTES_RX = 202, 204  # NVLink 5: cumulative bytes
LINK_COUNT, SPEED, SPEED_OF_ALL = 91, 164, 90  # megabytes (10^6) a second in one direction

NVLINK_FIELDS: tuple[Field, ...] = tuple(
    (field, ALL_LINKS) for field in (DATA_TX, DATA_RX, BYTES_TX, BYTES_RX)
)
"""Fields of all links together."""

ERROR_COUNTERS = {
    "replay": pynvml.NVML_NVLINK_ERROR_DL_REPLAY,
    "recovery": pynvml.NVML_NVLINK_ERROR_DL_RECOVERY,
    "crc_flit": pynvml.NVML_NVLINK_ERROR_DL_CRC_FLIT,
    "crc_data": pynvml.NVML_NVLINK_ERROR_DL_CRC_DATA,
}
ERROR_FIELDS = {208: "receive", 215: "recovery", 221: "symbol"}
"""NVLink 5, which has no counters of the other kind."""
SWITCH = "switch"


class NvLinkSums(NamedTuple):
    """What one read of the links gives."""

    links: tuple[LinkSample, ...]
    bytes_total: dict[str, float]
    errors_total: dict[str, float]


def nvlink_bytes(fields: Mapping[Field, float], scope: int) -> dict[str, float]:
    """Return cumulative bytes by direction of a link, or of all; NVLink 5's own fields first."""
    found = {}
    for way, own, kib in (("tx", BYTES_TX, DATA_TX), ("rx", BYTES_RX, DATA_RX)):
        if (own, scope) in fields:
            found[way] = fields[own, scope]
        elif (kib, scope) in fields:
            found[way] = fields[kib, scope] * KIB
    return found


class NvLinks:
    """Reads states and errors seldom, bytes of single links where asked or where needed."""

    def __init__(
        self, calls: NvmlCalls, handle: Any, clock: Callable[[], float], *, per_link: bool
    ) -> None:
        """Count the links and find what they lead to.

        Args:
            calls: of this GPU.
            handle: of this GPU.
            clock: monotonic, in seconds.
            per_link: whether bytes and errors are wanted link by link.
        """
        self._calls = calls
        self._handle = handle
        self._per_link = per_link
        answer = FieldReader(calls, handle, [(LINK_COUNT, 0)], clock).read()
        numbers = range(int(answer.get((LINK_COUNT, 0), 0)))
        self._peers = {link: self._peer(link) for link in numbers}
        speeds = [(SPEED, link) for link in numbers] + [(SPEED_OF_ALL, 0)]
        self._speeds = FieldReader(calls, handle, speeds if numbers else [], clock)
        errors = [(field, link) for link in numbers for field in ERROR_FIELDS]
        self._errors = FieldReader(calls, handle, errors, clock)
        ways = (DATA_TX, DATA_RX, BYTES_TX, BYTES_RX)
        singles = [(field, link) for link in numbers for field in ways]
        self._bytes = FieldReader(calls, handle, singles, clock)
        self._states: tuple[LinkSample, ...] = ()
        self._error_sums: dict[str, float] = {}

    def refresh_states(self) -> None:
        """Read states, speeds and errors."""
        if not self._peers:
            return
        speeds = self._speeds.read()
        errors = self._errors.read()
        self._states = tuple(self._state(link, speeds, errors) for link in self._peers)
        self._error_sums = {}
        for link in self._states:
            for kind, count in link.errors_total.items():
                self._error_sums[kind] = self._error_sums.get(kind, 0.0) + count

    def read(self, fields: Mapping[Field, float]) -> NvLinkSums:
        """Return the links as last refreshed, with the bytes of now.

        Args:
            fields: with ``NVLINK_FIELDS``, where the GPU has them.
        """
        total = nvlink_bytes(fields, ALL_LINKS)
        links = self._states
        if links and (self._per_link or not total):
            values = self._bytes.read()
            by_link = {link: nvlink_bytes(values, link) for link in self._peers}
            if not total:
                total = self._sum(by_link)
            if self._per_link:
                return NvLinkSums(
                    tuple(_with_bytes(link, by_link[link.link]) for link in links),
                    total,
                    self._error_sums,
                )
        quiet = tuple(_without_errors(link) for link in links)
        return NvLinkSums(quiet, total, self._error_sums)

    def _sum(self, by_link: Mapping[int, Mapping[str, float]]) -> dict[str, float]:
        """Return the sums; none when a link that is up has no value: a part is no total."""
        up = {link.link for link in self._states if link.active is not False}
        sums = {}
        for way in ("tx", "rx"):
            if up and all(way in by_link[link] for link in up):
                sums[way] = sum(values.get(way, 0.0) for values in by_link.values())
        return sums

    def _peer(self, link: int) -> str:
        kind = self._calls.ask(
            "nvmlDeviceGetNvLinkRemoteDeviceType", self._handle, link, key=f"peer type/{link}"
        )
        if kind == pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH:
            return SWITCH
        return bus_id(
            self._calls.ask(
                "nvmlDeviceGetNvLinkRemotePciInfo", self._handle, link, key=f"peer/{link}"
            )
        )

    def _state(
        self, link: int, speeds: Mapping[Field, float], errors: Mapping[Field, float]
    ) -> LinkSample:
        state = self._calls.ask("nvmlDeviceGetNvLinkState", self._handle, link, key=f"state/{link}")
        megabytes = speeds.get((SPEED, link)) or speeds.get((SPEED_OF_ALL, 0))
        found = {
            kind: errors[field, link]
            for field, kind in ERROR_FIELDS.items()
            if (field, link) in errors
        }
        for kind, counter in ERROR_COUNTERS.items():
            count = self._calls.ask(
                "nvmlDeviceGetNvLinkErrorCounter",
                self._handle,
                link,
                counter,
                key=f"nvlink errors/{link}/{kind}",
            )
            if count is not None:
                found[kind] = float(count)
        return LinkSample(
            link=link,
            active=None if state is None else bool(state),
            bytes_per_second_capacity=megabytes * 1e6 if megabytes else None,
            errors_total=found,
            peer=self._peers[link],
        )


def _with_bytes(link: LinkSample, values: Mapping[str, float]) -> LinkSample:
    return LinkSample(
        link.link,
        link.active,
        link.bytes_per_second_capacity,
        bytes_total=values,
        errors_total=link.errors_total,
        peer=link.peer,
    )


def _without_errors(link: LinkSample) -> LinkSample:
    return LinkSample(link.link, link.active, link.bytes_per_second_capacity, peer=link.peer)
