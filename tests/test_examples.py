"""The worked example of contracts: a retrieval tool, and an independent orchestrator."""

import ast
import asyncio
import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from satchel import Satchel, ToolCall

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"
ORCHESTRATOR = EXAMPLES / "orchestrator.py"
BOTH = "retrieve was refused: Give either query or ids, never both."
SECOND = "retrieve was left out: At most one call of a plan is bundled."
TWIN = "retrieve was left out: No two calls of a plan ask for the same."


@pytest.fixture(scope="module")
def orchestrator():
    return runpy.run_path(str(ORCHESTRATOR))


@pytest.fixture
def session():
    with Satchel(plugins=[EXAMPLES / "retrieval"]) as app:
        yield app.session()


@pytest.fixture
def take(orchestrator, session):
    """Return a function that takes a turn with one of the plans, or with calls."""

    def taken(plan, **options):
        planner = orchestrator["planned"](plan) if isinstance(plan, str) else lambda *_: plan
        return asyncio.run(orchestrator["take_turn"](session, planner, **options))

    return taken


def outcome(turn):
    """Return the outcome of the calls of a turn, by their positions."""
    _, corrected, pruned, rejected = turn.validation
    return {
        "corrected": {item.index: item.ids for item in corrected},
        "pruned": {item.index: item.ids for item in pruned},
        "rejected": {item.index: item.ids for item in rejected},
    }


@pytest.mark.parametrize(
    ("plan", "expected", "document_ids"),
    [
        ("kept", {}, ["tides", "ropes"]),
        ("corrected", {"corrected": {0: ("bundle-has-web",)}}, ["tides+news"]),
        ("second bundle", {"pruned": {1: ("one-bundle",)}}, ["tides+news"]),
        ("twin", {"pruned": {1: ("no-twin",)}}, ["tides"]),
        ("rejected", {"rejected": {0: ("one-way",)}}, []),
        (
            "mixed",
            {
                "corrected": {2: ("bundle-has-web",)},
                "pruned": {3: ("one-bundle",), 4: ("no-twin",)},
                "rejected": {1: ("one-way",)},
            },
            ["moon", "tides+news"],
        ),
    ],
)
def test_each_plan_ends_as_its_name_says(take, session, plan, expected, document_ids):
    turn = take(plan)
    assert outcome(turn) == {"corrected": {}, "pruned": {}, "rejected": {}, **expected}
    assert [item["id"] for item in session.state.get("documents", [])] == document_ids
    assert all(f'"id": "{name}"' in turn.prompt for name in document_ids)


def test_every_call_gets_its_result_at_its_position(take):
    turn = take("mixed")
    assert [result.call_id for result in turn.results] == ["0", "1", "2", "3", "4"]
    assert [result.text for result in turn.results[1::2]] == [BOTH, SECOND]
    assert turn.results[4].text == TWIN
    assert [result.error_code for result in turn.results] == [None, "rejected", None, None, None]


def test_the_model_does_not_hear_of_a_correction(take):
    (result,) = take("corrected").results
    assert result.structured == [
        {"id": "tides+news", "text": "The tide is high twice a day. The tide reached a mark today."}
    ]
    assert "bundle-has-web" not in result.text


def test_validating_a_validated_plan_changes_nothing(take, session):
    left = take("mixed").validation.plan
    again = session.validate(left)
    assert again.plan == left
    assert (again.corrected, again.pruned, again.rejected) == ((), (), ())


def test_a_new_turn_begins_without_the_documents_of_the_last_one(take, session):
    take("kept")
    turn = take("rejected")
    assert "documents" not in session.state
    assert "If there are none, say so." in turn.prompt
    assert "tides" not in turn.prompt


def test_a_call_with_neither_query_nor_ids_is_rejected(take):
    turn = take([ToolCall(name="retrieve", arguments={"web": True})])
    assert outcome(turn)["rejected"] == {0: ("one-way",)}


def test_the_host_configures_the_number_and_library_of_documents(take, session):
    assert (
        len(take([ToolCall(name="retrieve", arguments={"query": "e"})]).results[0].structured) == 3
    )
    turn = take([ToolCall(name="retrieve", arguments={"query": "e"})], config={"limit": "2"})
    assert len(turn.results[0].structured) == 2
    session.state["library"] = "kitchen"
    turn = take([ToolCall(name="retrieve", arguments={"query": "e"})])
    assert [item["id"] for item in turn.results[0].structured] == ["bread"]


@pytest.mark.parametrize("name", ["limit", "library"])
def test_the_model_neither_sees_nor_sets_values_of_the_host(take, session, name):
    assert name not in json.dumps(session.schemas()) + session.tool_guide()
    (result,) = take([ToolCall(name="retrieve", arguments={"query": "tide", name: "x"})]).results
    assert result.error_code == "invalid_arguments"


def test_the_planner_is_given_rules_and_schemas_from_the_contract(orchestrator, session):
    requests = []

    def planner(prompt, schemas):
        requests.append((prompt, schemas))
        return []

    asyncio.run(orchestrator["take_turn"](session, planner))
    ((prompt, schemas),) = requests
    assert '<rule id="one-bundle">At most one call of a plan is bundled.</rule>' in prompt
    assert [*schemas[0]["function"]["parameters"]["properties"]] == [
        "query",
        "ids",
        "bundled",
        "web",
    ]


def test_the_orchestrator_does_not_depend_on_the_plugin():
    source = ORCHESTRATOR.read_text()
    modules = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            modules |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            modules.add(node.module.partition(".")[0])
    assert modules - sys.stdlib_module_names == {"satchel"}
    assert not {"importlib", "runpy"} & modules
    # It may say in which folder the plugin lies.
    rest = source.replace('"retrieval"', "")
    assert not re.search(r"retriev|RETRIEVE|documents?\b.*\[|query|bundled|DOCUMENTS", rest)


def test_the_rules_of_the_plugin_are_known_once_its_code_was_loaded():
    read = Satchel(plugins=[EXAMPLES / "retrieval"], run_code=False)
    assert read.catalog.tools["retrieve"].contract is None
    contract = Satchel(plugins=[EXAMPLES / "retrieval"]).catalog.tools["retrieve"].contract
    assert [(rule.id, rule.correct is not None) for rule in contract.invariants] == [
        ("one-way", False),
        ("bundle-has-web", True),
        ("one-bundle", True),
        ("no-twin", True),
    ]


def test_the_page_prints_what_the_script_does():
    (printed,) = re.findall(
        r"^```text\n(.*?)^```", (EXAMPLES / "README.md").read_text(), re.MULTILINE | re.DOTALL
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", str(ORCHESTRATOR), "mixed"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout == printed
