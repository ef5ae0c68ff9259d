"""Measure what contracts cost, as ratios to floors measured in the same run.

    python benchmarks/contracts.py [CALLS]

The floor of a plan is a direct call of its checks, once for each call. The floors of a call are
the same tool without a contract, and a plain `await` of its function.
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
    """Return whether there is a city."""
    return bool(call.arguments["city"])


def is_short(call: Any, state: Any, config: Any) -> bool:
    """Return whether it is at most a week."""
    return bool(call.arguments["days"] <= WEEK)


def shortened(call: Any, state: Any, config: Any) -> Any:
    """Return the call with a week."""
    return replace(call, arguments={**call.arguments, "days": WEEK}), True


def is_new(call: Any, state: Any, config: Any, plan: Plan) -> bool:
    """Return whether no earlier call has the same arguments."""
    return all(call.arguments != other.arguments for other in plan.before)


RULES = (
    ToolInvariant(id="city", rule="Name the city.", check=has_city),
    ToolInvariant(id="week", rule="At most seven days.", check=is_short, correct=shortened),
)
SIBLINGS = (*RULES, ToolInvariant(id="new", rule="No two calls ask for the same.", check=is_new))


async def text(city: str, days: int = 3) -> str:
    """Return text."""
    return f"{city} {days}"


async def text_with_values(city: str, limit: int, unit: str, days: int = 3) -> str:
    """Return text with a config param and a state read."""
    return f"{city} {days} {limit} {unit}"


def contracts_with(rules: tuple[ToolInvariant, ...]) -> Contracts:
    """Return contracts of `HELD` different tools."""
    names = (f"tool{number}" for number in range(HELD))
    return Contracts(
        ToolContract(name=name, schema=SCHEMA, description="Answer.", invariants=rules)
        for name in names
    )


def a_session(contracts: Contracts, plan: list[ToolCall]) -> Session:
    """Return a session with the tools of a plan and their contracts."""
    app = Satchel()
    for call in plan:
        app.register_tool(text, name=call.name)
        app.register_contract(contracts[call.name])
    return app.session()


def a_plan(days: int) -> list[ToolCall]:
    """Return calls of `STEPS` different tools with different arguments."""
    return [
        ToolCall(
            name=f"tool{HELD // STEPS * step}", arguments={"city": f"City {step}", "days": days}
        )
        for step in range(STEPS)
    ]


def bare(plan: list[ToolCall], rules: tuple[ToolInvariant, ...]) -> None:
    """Call each check once, and the corrector of a broken rule."""
    for at, call in enumerate(plan):
        for rule in rules:
            plan_argument = (Plan(tuple(plan), at),) if rule.sees_plan else ()
            if not rule.check(call, {}, {}, *plan_argument) and rule.correct is not None:
                rule.correct(call, {}, {}, *plan_argument)


def milliseconds(*acts: Callable[[], object], times: int = 10) -> list[float]:
    """Return the best time of each, measured in turn, so that other load affects all."""
    rounds = [[timeit(act, number=times) for act in acts] for _ in range(5 * ROUNDS)]
    return [min(several) / times * 1e3 for several in zip(*rounds, strict=True)]


def show_plans() -> None:
    """Print the times of validating plans."""
    print(f"a plan of {STEPS} calls, {HELD} contracts, milliseconds")
    print(f"{'':34}{'satchel':>9}{'floor':>9}{'ratio':>8}")
    for title, rules, days in (
        ("two rules, none broken", RULES, 5),
        ("two rules, every call corrected", RULES, 9),
        ("third rule sees the plan", SIBLINGS, 5),
        ("third rule, every call corrected", SIBLINGS, 9),
    ):
        contracts, plan = contracts_with(rules), a_plan(days)
        show_plan(title, contracts.validate, plan, rules)
    session = a_session(contracts, plan)
    show_plan("the same, by a session", session.validate, plan, rules)


def show_plan(
    title: str,
    validate: Callable[[list[ToolCall]], Validation],
    plan: list[ToolCall],
    rules: tuple[ToolInvariant, ...],
) -> None:
    """Measure a plan of which all calls remain, and print it."""
    if len(validate(plan).plan) != STEPS:
        raise RuntimeError("the plan lost a call")
    ours, floor = milliseconds(lambda: validate(plan), lambda: bare(plan, rules))
    print(f"{title:34}{ours:9.3f}{floor:9.3f}{ours / floor:8.2f}")


async def show_calls(count: int) -> None:
    """Print the times of calls."""
    print(f"\n{count} calls, microseconds each")
    print(f"{'':34}{'contract':>9}{'without':>9}{'ratio':>8}{'await':>9}{'ratio':>8}")
    config = (ToolConfigParam("limit", 5, int),)
    reads = (ToolStateRead("unit", "C"),)
    effects = (ToolStateEffect(key="answer", type_hint=str),)
    rows: list[tuple[str, Mapping[str, Any]]] = [
        ("no rules", {}),
        ("two rules", {"invariants": RULES}),
        ("an effect", {"state_effects": effects}),
        ("a config param and a read", {"config_params": config, "state_reads": reads}),
        (
            "all together",
            {
                "invariants": RULES,
                "config_params": config,
                "state_reads": reads,
                "state_effects": effects,
            },
        ),
    ]
    for title, parts in rows:
        takes_values = "config_params" in parts
        function: Any = text_with_values if takes_values else text
        values = {"limit": 5, "unit": "C"} if takes_values else {}
        plain, contracted = Satchel(), Satchel()
        plain.register_tool(function, presets=values)
        contracted.register_tool(function)
        contracted.register_contract(
            ToolContract(name=function.__name__, schema=SCHEMA, description="Answer.", **parts)
        )
        await show(
            title,
            count,
            partial(contracted.session().call, function.__name__, ARGUMENTS),
            partial(plain.session().call, function.__name__, ARGUMENTS),
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
    """Return the seconds for one call."""
    start = time.perf_counter()
    for _ in range(count):
        await call()
    return (time.perf_counter() - start) / count


if __name__ == "__main__":
    show_plans()
    asyncio.run(show_calls(int(sys.argv[1]) if len(sys.argv) > 1 else 3_000))
