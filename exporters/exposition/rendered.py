"""One refresh's page in each form a scraper may ask for, each made once."""

import gzip
import threading
import time
from collections.abc import Callable, Iterable
from enum import Enum
from typing import NamedTuple

from vramscope.exporters.exposition.families import Family
from vramscope.exporters.exposition.render import (
    FamilyText,
    LineMaker,
    openmetrics_page,
    text_page,
)

__all__ = ["Form", "Format", "Rendered", "Renderer"]

GZIP_LEVEL = 1
"""A fifth of level 9's CPU for a page that is a tenth longer."""
WANTED_FOR_S = 150.0
"""A form is made ahead this long after it was last asked for: two scrapes a minute apart, and
some. So a scraper finds its page ready, and nobody pays for forms that nobody reads."""


class Format(Enum):
    """An exposition format; the value is its content type."""

    TEXT = "text/plain; version=0.0.4; charset=utf-8"
    OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


class Form(NamedTuple):
    """A format, compressed or not."""

    format: Format = Format.TEXT
    gzipped: bool = False


class Rendered:
    """The page of one refresh. Thread-safe: made in one thread, served from another.

    Args:
        families: their text.
        asked: told of each form that is asked for.
    """

    def __init__(
        self, families: list[FamilyText], asked: Callable[[Form], None] = lambda _: None
    ) -> None:
        self._families = families
        self._asked = asked
        self._made: dict[Form, bytes] = {}
        self._making = threading.Lock()

    def ready(self, form: Form) -> bytes | None:
        """Return the page if it is made already, for a caller that may not wait."""
        self._asked(form)
        return self._made.get(form)

    def page(self, form: Form = Form()) -> bytes:  # noqa: B008 (immutable)
        """Return the page, made now if it isn't yet: milliseconds for a long one."""
        with self._making:  # two scrapers of one form make it once
            return self._page(form)

    def _page(self, form: Form) -> bytes:
        made = self._made.get(form)
        if made is None:
            if form.gzipped:
                plain = self._page(form._replace(gzipped=False))
                # No time in the header, so that equal pages are equal bytes.
                made = gzip.compress(plain, GZIP_LEVEL, mtime=0)
            elif form.format is Format.OPENMETRICS:
                made = openmetrics_page(self._families)
            else:
                made = text_page(self._families)
            self._made[form] = made
        return made


class Renderer:
    """Turns each refresh's families into a page, and keeps what the next refresh can reuse.

    Not thread-safe: one refresh at a time. What it returns is.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lines = LineMaker()
        self._asked_s: dict[Form, float] = {}

    def render(self, families: Iterable[Family], more: Iterable[FamilyText] = ()) -> Rendered:
        """Return the page of ``families``, in the forms that scrapers use made ahead.

        Args:
            families: under the catalog's names.
            more: families under names that are not the catalog's, behind the others.
        """
        rendered = Rendered([*self._lines.lines(families), *more], self._note)
        now = self._clock()
        for form, asked_s in list(self._asked_s.items()):
            if now - asked_s <= WANTED_FOR_S:
                rendered.page(form)
            else:
                del self._asked_s[form]
        return rendered

    def _note(self, form: Form) -> None:
        self._asked_s[form] = self._clock()
