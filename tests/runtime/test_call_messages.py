from satchel.runtime.call_messages import interruption, too_slow, wrong_arguments
from satchel.tools import ArgumentFault

PARAMETERS = {
    "properties": {
        "city": {"type": "string"},
        "unit": {"enum": ["C", "F"], "type": "string"},
        "mode": {"const": "fast"},
        "days": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "stop": {"$ref": "#/$defs/Stop"},
        "more": {},
        "odd": True,
    },
    "required": ["city"],
}


def test_the_model_reads_what_is_wrong_and_what_the_tool_takes():
    faults = (ArgumentFault("city", "is required"), ArgumentFault("", "they are odd"))
    assert wrong_arguments("forecast", faults, PARAMETERS) == (
        "invalid arguments for forecast: city: is required; they are odd. It takes: "
        "city (string, required), unit ('C' | 'F'), mode ('fast'), days (integer | null), "
        "stop (Stop), more (any), odd (any)"
    )


def test_a_tool_that_takes_nothing_says_so():
    message = wrong_arguments("now", (ArgumentFault("a", "there is no such argument"),), {})
    assert message.endswith("It takes: no arguments")


def test_many_faults_are_counted_not_listed():
    faults = tuple(ArgumentFault(f"a{at}", "is required") for at in range(9))
    message = wrong_arguments("now", faults, {})
    assert "a2: is required; and 6 more" in message
    assert "a3" not in message


def test_what_the_model_sent_can_neither_grow_nor_break_the_message():
    fault = ArgumentFault("a\n\u202e" * 1000, "there is no such argument")
    message = wrong_arguments("now", (fault,), {"properties": {"b" * 9000: {}}})
    assert len(message) < 700
    assert message.isprintable()


def test_a_slow_call_names_the_limit_it_hit():
    message = too_slow("forecast", 60.0, "limit tool_call")
    assert "forecast gave no answer within 60 s (limit tool_call)" in message


def test_a_call_that_was_ended_says_who_did_it():
    result = interruption("forecast", "call-1")
    assert "forecast was interrupted by the user" in result.text
    assert (result.is_error, result.is_interrupted) == (True, True)
    assert (result.error_code, result.call_id) == ("interrupted", "call-1")


def test_a_call_without_an_answer_in_time_may_have_run_only_where_that_is_not_known():
    message = "pay gave no answer within 2.5 s (timeout)"
    assert too_slow("pay", 2.5, "timeout").startswith(f"{message}. Ask for less")
    elsewhere = too_slow("pay", 2.5, "timeout", is_elsewhere=True)
    assert elsewhere.startswith(f"{message}. It may have run: find out")
