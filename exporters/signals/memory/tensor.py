"""One weight of a model: its shape in the checkpoint, and which part of it a rank holds."""

import math
from dataclasses import dataclass

from vramscope.exporters.errors import VramscopeError

__all__ = ["WHOLE", "LayoutError", "Split", "Tensor", "columns", "heads", "rows", "vocabulary"]

VOCABULARY_PADDING = 64
"""vLLM pads a vocabulary to a multiple of it (``DEFAULT_VOCAB_PADDING_SIZE``)."""


class LayoutError(VramscopeError):
    """A model can't be cut into so many ranks; says which number is not divisible."""


@dataclass(frozen=True, slots=True)
class Split:
    """How tensor parallelism cuts a tensor.

    Attributes:
        axis: that is cut; None: every rank holds all of it.
        units: the axis is so many equal pieces, of which each rank gets the same number.
        what: the config's name for ``units``.
        replicate: with more ranks than units, several ranks hold the same one.
        padding: the number of units is rounded up to a multiple of it.
    """

    axis: int | None = None
    units: int = 1
    what: str = ""
    replicate: bool = False
    padding: int = 1

    def size(self, size: int, ranks: int) -> int:
        """Return what a rank holds of an axis of ``size``.

        Raises:
            LayoutError: the units can't be dealt out evenly.
        """
        units = -(-self.units // self.padding) * self.padding
        if units % ranks == 0:
            held = units // ranks
        elif self.replicate and ranks % units == 0:
            held = 1
        else:
            raise LayoutError(f"{self.what} is {self.units}: can't be split over {ranks} ranks")
        return size // self.units * held


WHOLE = Split()


def rows(size: int, what: str) -> Split:
    """Cut the outputs of a matrix."""
    return Split(0, size, what)


def columns(size: int, what: str) -> Split:
    """Cut the inputs of a matrix."""
    return Split(1, size, what)


def heads(count: int, what: str, *, replicate: bool = False) -> Split:
    """Cut the outputs of a matrix between heads."""
    return Split(0, count, what, replicate)


def vocabulary(size: int) -> Split:
    """Cut a padded vocabulary."""
    return Split(0, size, "vocab_size", padding=VOCABULARY_PADDING)


@dataclass(frozen=True, slots=True)
class Tensor:
    """A weight, or ``copies`` alike.

    Attributes:
        name: within its layer or part of the model.
        shape: in the checkpoint: (outputs, inputs) for a matrix.
        split: over tensor-parallel ranks.
        bits: of an element where it is not the model's own precision.
        linear: a matrix that quantisation may replace.
        copies: how many alike.
        experts: they are experts of a mixture: ranks of data parallelism share them too.
    """

    name: str
    shape: tuple[int, ...]
    split: Split = WHOLE
    bits: int | None = None
    linear: bool = False
    copies: int = 1
    experts: bool = False

    @property
    def elements(self) -> int:
        """Of one copy, in the checkpoint."""
        return math.prod(self.shape)

    def rank_shape(self, ranks: int) -> tuple[int, ...]:
        """Return the shape that a rank holds.

        Raises:
            LayoutError: it can't be cut so.
        """
        axis = self.split.axis
        if axis is None:
            return self.shape
        held = self.split.size(self.shape[axis], ranks)
        return (*self.shape[:axis], held, *self.shape[axis + 1 :])
