"""Label matchers for the dashboards' variables, and how a query is narrowed by more labels."""

__all__ = ["CLUSTER", "ENGINE", "GPU", "HOST", "MODEL", "RATE", "where"]

CLUSTER = 'cluster=~"$cluster"'
"""Prometheus' own label. ``All`` is ``.*``, which fits series without it too."""
MODEL = f'{CLUSTER},model=~"$model"'
ENGINE = f'{MODEL},engine=~"$engine"'
HOST = f'{CLUSTER},hostname=~"$hostname"'
GPU = f'{HOST},uuid=~"$uuid"'
RATE = "$__rate_interval"


OPERATORS = {"!~": "!~", "~": "=~", "": "="}


def where(matchers: str, **labels: str) -> str:
    """Return a selector in braces; a value that starts with ``~`` or ``!`` is a regular expression.

    >>> where(CLUSTER, tier="gpu", reason="!~idle")
    '{cluster=~"$cluster",tier="gpu",reason!~"idle"}'
    """
    found = [matchers]
    for name, value in labels.items():
        for mark, operator in OPERATORS.items():
            if value.startswith(mark):
                found.append(f'{name}{operator}"{value.removeprefix(mark)}"')
                break
    return "{" + ",".join(found) + "}"
