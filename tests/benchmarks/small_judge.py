"""Whether a small purchase is the cheapest: CP-SAT as judge, `python -m … < sets.json > verdicts`.

A process of its own that knows nothing of the planner: only pods, sizes and prices. OR-Tools is no
requirement of the project (`pip install ortools`); it brings a HiGHS of its own, which must not
share a process with the planner's.
"""

import json
import sys
from collections.abc import Iterator
from math import gcd
from typing import Any

SECONDS_MAX = 20.0
"""Of each set; what is not settled then is listed as undecided."""
WORKERS = 2


def verdict(cp_model: Any, case: dict[str, Any]) -> dict[str, Any]:
    """The cheapest purchase of a set that costs no more than `usd_micro`, and whether it is proven.

    Slots of nodes by falling price, each of one size or none; pods of equal shape are counted.
    """
    prices, sizes, shapes = case["prices"], case["sizes"], case["shapes"]
    unit = gcd(*prices)
    model = cp_model.CpModel()
    slots = min(sum(n for *_, n in shapes), case["usd_micro"] // min(prices))
    kinds = [[model.new_bool_var("") for _ in sizes] for _ in range(slots)]
    pods = [[model.new_int_var(0, n, "") for *_, n in shapes] for _ in range(slots)]
    costs = [sum(p // unit * k for p, k in zip(prices, slot, strict=True)) for slot in kinds]
    for number in range(slots):
        model.add_at_most_one(kinds[number])
        for resource in range(len(sizes[0])):
            asked = sum(s[resource] * x for s, x in zip(shapes, pods[number], strict=True))
            offered = sum(s[resource] * k for s, k in zip(sizes, kinds[number], strict=True))
            model.add(asked <= offered)
        if number:
            model.add(costs[number - 1] >= costs[number])
    for shape, (*_, count) in enumerate(shapes):
        model.add(sum(slot[shape] for slot in pods) == count)
    model.add(sum(costs) <= case["usd_micro"] // unit)
    model.minimize(sum(costs))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = SECONDS_MAX
    solver.parameters.num_workers = WORKERS
    status = solver.solve(model)
    known = status in {cp_model.OPTIMAL, cp_model.FEASIBLE}
    return {
        "usd_micro": round(solver.objective_value) * unit if known else None,
        "proven": status == cp_model.OPTIMAL,
    }


def verdicts(cases: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """One for each set, in order.

    Raises:
        ImportError: OR-Tools is not installed.
    """
    from ortools.sat.python import cp_model  # noqa: PLC0415 - not a requirement

    for case in cases:
        yield verdict(cp_model, case)


def main() -> None:
    """Judge what stdin holds; a line for each set."""
    for each in verdicts(json.load(sys.stdin)):
        sys.stdout.write(json.dumps(each) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
