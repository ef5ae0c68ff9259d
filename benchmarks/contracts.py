"""What contracts cost, as ratios to floors that are measured in the same run.

    python benchmarks/contracts.py [CALLS]

The floor of a plan is its own checks, called bare, once for each call. The floors of a call are
the same tool without a contract, and its function behind a plain `await`.
"""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from timeit import timeit
from typing import Any

from satchel import (
    Contracts,
    Plan,
    Satchel,
    Session,
    ToolCall,
    ToolConfigParam,
    ToolContract,
    ToolInvariant,
    ToolStateEffect,
    ToolStateRead,
    Validation,
)

HELD = 1_000
STEPS = 20
ROUNDS = 7
WEEK = 7
SCHEMA = {"city": "str - a city", "days": "int = 3 - how many days"}
ARGUMENTS: dict[str, Any] = {"city": "Oslo", "days": 5}

Call = Callable[[], Awaitable[object]]


def has_city(call: Any, state: Any, config: Any) -> bool:
    """Tell whether there is a city."""
    return bool(call.arguments["city"])


def is_short(call: Any, state: Any, config: Any) -> bool:
    """Tell whether it is a week at most."""
    return bool(call.arguments["days"] <= WEEK)


def shortened(call: Any, state: Any, config: Any) -> Any:
    """Make it a week."""
    return replace(call, arguments={**call.arguments, "days": WEEK}), True


def is_new(call: Any, state: Any, config: Any, plan: Plan) -> bool:
    """Tell whether no call before asks for the same."""
    return all(call.arguments != other.arguments for other in plan.before)


RULES = (
    ToolInvariant(id="city", rule="Name the city.", check=has_city),
    ToolInvariant(id="week", rule="At most seven days.", check=is_short, correct=shortened),
)
SIBLINGS = (*RULES, ToolInvariant(id="new", rule="No two calls ask for the same.", check=is_new))


async def words(city: str, days: int = 3) -> str:
    """Answer with text."""
    return f"{city} {days}"


async def handed(city: str, limit: int, unit: str, days: int = 3) -> str:
    """Answer with text, of what it is handed as well."""
    return f"{city} {days} {limit} {unit}"


def contracts_with(rules: tuple[ToolInvariant, ...]) -> Contracts:
    """Return that many contracts, each of a tool of its own."""
    names = (f"tool{number}" for number in range(HELD))
    return Contracts(
        ToolContract(name=name, schema=SCHEMA, description="Answer.", invariants=rules)
        for name in names
    )


def a_session(contracts: Contracts, plan: list[ToolCall]) -> Session:
    """Return a session that has the tools of a plan, held to their contracts."""
    app = Satchel()
    for call in plan:
        app.register_tool(words, name=call.name)
        app.register_contract(contracts[call.name])
    return app.session()


def a_plan(days: int) -> list[ToolCall]:
    """Return calls of as many tools; the arguments of each are its own."""
    return [
        ToolCall(
            name=f"tool{HELD // STEPS * step}", arguments={"city": f"City {step}", "days": days}
        )
        for step in range(STEPS)
    ]


def bare(plan: list[ToolCall], rules: tuple[ToolInvariant, ...]) -> None:
    """Call each check once, and a corrector where it is broken."""
    for at, call in enumerate(plan):
        for rule in rules:
            more = (Plan(tuple(plan), at),) if rule.sees_plan else ()
            if not rule.check(call, {}, {}, *more) and rule.correct is not None:
                rule.correct(call, {}, {}, *more)


def milliseconds(*acts: Callable[[], object], times: int = 10) -> list[float]:
    """Return the best time of each, measured in turn, so that a busy machine is busy for all."""
    rounds = [[timeit(act, number=times) for act in acts] for _ in range(5 * ROUNDS)]
    return [min(several) / times * 1e3 for several in zip(*rounds, strict=True)]


def show_plans() -> None:
    """Print what it takes to validate plans."""
    print(f"a plan of {STEPS} calls, {HELD} contracts held, milliseconds")
    print(f"{'':34}{'satchel':>9}{'floor':>9}{'ratio':>8}")
    for title, rules, days in (
        ("two rules, all kept", RULES, 5),
        ("the same, every call corrected", RULES, 9),
        ("a third that sees the plan", SIBLINGS, 5),
        ("the same, every call corrected", SIBLINGS, 9),
    ):
        contracts, plan = contracts_with(rules), a_plan(days)
        show_plan(title, contracts.validate, plan, rules)
    session = a_session(contracts, plan)
    show_plan("the same, of a session", session.validate, plan, rules)


def show_plan(
    title: str,
    validate: Callable[[list[ToolCall]], Validation],
    plan: list[ToolCall],
    rules: tuple[ToolInvariant, ...],
) -> None:
    """Measure a plan that is wholly left, and print it."""
    if len(validate(plan).plan) != STEPS:
        raise RuntimeError("the plan lost a call")
    ours, floor = milliseconds(lambda: validate(plan), lambda: bare(plan, rules))
    print(f"{title:34}{ours:9.3f}{floor:9.3f}{ours / floor:8.2f}")


async def show_calls(count: int) -> None:
    """Print what it takes to make calls."""
    print(f"\n{count} calls, microseconds each")
    print(f"{'':34}{'contract':>9}{'without':>9}{'ratio':>8}{'await':>9}{'ratio':>8}")
    config = (ToolConfigParam("limit", 5, int),)
    reads = (ToolStateRead("unit", "C"),)
    effects = (ToolStateEffect(key="told", type_hint=str),)
    rows: list[tuple[str, Mapping[str, Any]]] = [
        ("no rules", {}),
        ("two rules", {"invariants": RULES}),
        ("an effect", {"state_effects": effects}),
        ("handed two values", {"config_params": config, "state_reads": reads}),
        (
            "all of it",
            {
                "invariants": RULES,
                "config_params": config,
                "state_reads": reads,
                "state_effects": effects,
            },
        ),
    ]
    for title, more in rows:
        is_handed = "config_params" in more
        function: Any = handed if is_handed else words
        values = {"limit": 5, "unit": "C"} if is_handed else {}
        free, held = Satchel(), Satchel()
        free.register_tool(function, presets=values)
        held.register_tool(function)
        held.register_contract(
            ToolContract(name=function.__name__, schema=SCHEMA, description="Answer.", **more)
        )
        await show(
            title,
            count,
            partial(held.session().call, function.__name__, ARGUMENTS),
            partial(free.session().call, function.__name__, ARGUMENTS),
            partial(function, **ARGUMENTS, **values),
        )


async def show(title: str, count: int, *calls: Call) -> None:
    """Measure all in turn, and print the best of each."""
    best = [float("inf")] * len(calls)
    for _ in range(ROUNDS):
        for at, call in enumerate(calls):
            best[at] = min(best[at], await each(count, call))
    ours, without, plain = (seconds * 1e6 for seconds in best)
    ratios = f"{without:9.2f}{ours / without:8.2f}{plain:9.2f}{ours / plain:8.2f}"
    print(f"{title:34}{ours:9.2f}{ratios}")


async def each(count: int, call: Call) -> float:
    """Return the seconds that one call takes."""
    start = time.perf_counter()
    for _ in range(count):
        await call()
    return (time.perf_counter() - start) / count


if __name__ == "__main__":
    show_plans()
    asyncio.run(show_calls(int(sys.argv[1]) if len(sys.argv) > 1 else 3_000))
