"""Which form of a page a request wants, from its headers alone."""

from collections.abc import Iterator

from vramscope.exporters.exposition.rendered import Form, Format

__all__ = ["wanted_form"]

OPENMETRICS_VERSIONS = (None, "1.0.0")
"""Of the media type's parameter; none means any. 0.0.1 is an older text that we don't write."""
TEXT_VERSIONS = (None, "0.0.4")


def wanted_form(accept: str, accept_encoding: str) -> Form:
    """Return what the client ranks highest of what we write; text, uncompressed, by default.

    Args:
        accept: the Accept header; empty means anything.
        accept_encoding: the Accept-Encoding header; empty means as it is.

    >>> wanted_form("application/openmetrics-text;version=1.0.0,text/plain;q=0.5", "gzip").gzipped
    True
    """
    return Form(_format(accept), _gzip_wanted(accept_encoding))


def _format(accept: str) -> Format:
    best, best_quality = Format.TEXT, 0.0
    for media_type, parameters in _elements(accept):
        quality = _quality(parameters)
        version = parameters.get("version")
        if media_type == "application/openmetrics-text" and version in OPENMETRICS_VERSIONS:
            offered = Format.OPENMETRICS
        elif media_type in ("text/plain", "text/*", "*/*") and version in TEXT_VERSIONS:
            offered = Format.TEXT
        else:
            continue
        if quality > best_quality:
            best, best_quality = offered, quality
    return best


def _gzip_wanted(accept_encoding: str) -> bool:
    quality = {coding: _quality(parameters) for coding, parameters in _elements(accept_encoding)}
    return quality.get("gzip", quality.get("*", 0.0)) > 0


def _elements(header: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each element of a list header, lower case, with its parameters."""
    for element in header.lower().split(","):
        name, *parameters = (part.strip() for part in element.split(";"))
        pairs = (parameter.partition("=") for parameter in parameters)
        yield name, {key.strip(): value.strip().strip('"') for key, _, value in pairs}


def _quality(parameters: dict[str, str]) -> float:
    try:
        quality = float(parameters.get("q", "1"))
    except ValueError:
        return 0.0
    return quality if 0 <= quality <= 1 else 0.0
