"""NVLinks from DCGM: their state, and where asked their traffic and errors one by one."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from vramscope.exporters.gpu.dcgm_engine import GPU, Engine, Key, Values
from vramscope.exporters.gpu.dcgm_entities import Entity, link_states
from vramscope.exporters.gpu.dcgm_fields import LINK_FILLS, Quantity, per_link_ids
from vramscope.exporters.gpu.dcgm_values import Missing, link_sample
from vramscope.exporters.signals.gpu import LinkSample

__all__ = ["read_links"]

PER_LINK = tuple(per_link_ids())

Fill = tuple[Quantity, float | str]


def read_links(
    engine: Engine,
    values: Mapping[Key, Values],
    links: Sequence[Entity],
    link_fields: Sequence[int],
) -> dict[int, tuple[LinkSample, ...]]:
    """Return the NVLinks that are there, by DCGM's id of the GPU.

    Where DCGM does not tell the states of links, a link is one that has a value.

    Args:
        engine: connected.
        values: latest of the GPUs, the fields that each has for its links among them.
        links: LINK entities, which DCGM has since 4.6.
        link_fields: watched on them.
    """
    states = link_states(engine)
    of_links, _ = engine.latest_apart([link.key for link in links], link_fields)
    fills: dict[tuple[int, int], list[Fill]] = defaultdict(list)
    for gpu, link, fill in (*_of_entities(links, of_links), *_of_gpus(values)):
        fills[gpu, link].append(fill)
    found = {}
    for gpu in (i for group, i in values if group == GPU):
        known = states.get(gpu, {})
        numbers = known if states else sorted(link for i, link in fills if i == gpu)
        found[gpu] = tuple(
            link_sample(link, known.get(link), fills.get((gpu, link), ())) for link in numbers
        )
    return found


def _of_entities(
    links: Sequence[Entity], values: Mapping[Key, Values]
) -> Iterator[tuple[int, int, Fill]]:
    for entity in links:
        for i, value in values.get(entity.key, {}).items():
            if entity.link is not None and not isinstance(value, Missing):
                yield entity.gpu.index, entity.link, (LINK_FILLS[i], value)


def _of_gpus(values: Mapping[Key, Values]) -> Iterator[tuple[int, int, Fill]]:
    for (group, gpu), found in values.items():
        for i, link, quantity in PER_LINK:
            value = found.get(i, Missing.NOT_WATCHED)
            if group == GPU and not isinstance(value, Missing):
                yield gpu, link, (quantity, value)
