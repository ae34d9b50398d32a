"""Policies: a request and what is believed of the engines in, one engine out. Pure.

The table is what the setting ``policy`` chooses from. A new policy is a file and a row.
"""

from vramscope.controller.policy.decision import Decision, Pick, Policy
from vramscope.controller.policy.least_request import LEAST_REQUEST
from vramscope.controller.policy.round_robin import ROUND_ROBIN
from vramscope.controller.policy.seed import SEED

__all__ = ["POLICIES", "Decision", "Pick", "Policy"]

POLICIES: dict[str, Policy] = {
    "seed": SEED,
    "round-robin": ROUND_ROBIN,
    "least-request": LEAST_REQUEST,
}
