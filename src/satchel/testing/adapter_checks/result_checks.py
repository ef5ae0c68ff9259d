"""What the model and the host read of a call: errors, pictures, parts, and never nothing."""

from satchel.testing.adapter_checks.agent_host import AgentHost
from satchel.testing.adapter_checks.sample_world import World, call, played


async def errors_are_word_for_word(host: AgentHost, world: World) -> None:
    """The text of a `ToolError` arrives unchanged; an unexpected exception shows no detail."""
    model = await played(host, world, [call("fail", "f"), call("crash", "c")])
    text = model.answers["f"].text
    assert "the archive is closed; try tomorrow" in text, text
    assert "secret detail" not in model.answers["c"].text, model.answers
    assert "tool failed" in model.answers["c"].text, model.answers


async def errors_are_marked(host: AgentHost, world: World) -> None:
    """An error is marked as one, and a success is not."""
    model = await played(host, world, [call("fail", "f"), call("add", "a", a=1, b=2)])
    assert model.answers["f"].is_error is True, model.answers
    assert not model.answers["a"].is_error, model.answers


async def bad_arguments_are_explained(host: AgentHost, world: World) -> None:
    """Invalid arguments are explained in Satchel's words; convertible ones are converted."""
    model = await played(
        host, world, [call("add", "bad", a="x", b=1), call("add", "good", a="3", b=1)]
    )
    expected = (await world.session().call("add", {"a": "x", "b": 1})).text
    assert expected in model.answers["bad"].text, model.answers
    assert "4" in model.answers["good"].text, model.answers


async def pictures_arrive(host: AgentHost, world: World) -> None:
    """A picture reaches the model."""
    model = await played(host, world, [call("picture", "p")])
    assert model.answers["p"].media == 1, model.answers


async def a_result_is_never_empty(host: AgentHost, world: World) -> None:
    """What a framework cannot pass on becomes text: sound, files, links, nothing, empty errors."""
    names = ("everything", "nothing", "failed_picture", "fail_silently")
    calls = [call("picture", "p"), *(call(name, name) for name in names)]
    model = await played(host, world, calls)
    for name in ("p", *names):
        answer = model.answers[name]
        assert answer.text.strip() or answer.media, (name, model.answers)
    text, media = model.answers["everything"].text, model.answers["everything"].media
    assert "look at this" in text, model.answers
    assert "example.org" in text, model.answers
    assert "report.pdf" in text or media > 1, model.answers


async def chunks_reach_the_host(host: AgentHost, world: World) -> None:
    """The parts of a result reach the host while the tool runs; the model reads all of it."""
    model = await played(host, world, [call("count", "n", to=3)])
    assert [text for text in model.chunks if "part" in text], model.chunks
    assert "part 2" in model.answers["n"].text, model.answers
