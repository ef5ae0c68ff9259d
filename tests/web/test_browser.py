"""The pages in a real Chromium: live, by keyboard, accessible, and with hostile content."""

import importlib.util
import json
import shutil
import time
from pathlib import Path

import pytest
from dev_servers import HOSTILE, LOOKS, PATIENCE, serious_faults

pytestmark = pytest.mark.slow
SIGNATURES = Path(__file__).parents[1] / "tools/dialects/signatures.py"
EVERY_PAGE = ["/", "/prompt", "/problems", "/tools/add", "/sessions/1", "/timeline", "/servers"]
EVERY_PAGE += ["/plugins", "/skills/pdf?q=form", "/?q=pdf", "/tools/none"]

# Without the timers of the test runner between: what a person sees happen.
SEEN_AFTER = """([selector, text]) => new Promise((resolve) => {
  const start = performance.now();
  const look = () => document.querySelector(selector)?.textContent.includes(text)
    ? resolve(performance.now() - start) : setTimeout(look, 5);
  look();
})"""


def wait_for_text(page, selector: str, text: str) -> None:
    page.wait_for_function(
        "([selector, text]) => document.querySelector(selector)?.textContent.includes(text)",
        arg=[selector, text],
    )


# ---- live ---------------------------------------------------------------------------------------


def test_an_edit_shows_in_the_prompt_and_its_diff(start_server, open_page, folders, write_skill):
    page = open_page(start_server(), "/prompt")
    write_skill(folders / "skills", "pdf", description="Signs contracts.")
    wait_for_text(page, "#prompt-diff .added", "Signs contracts.")
    assert "Signs contracts." in page.inner_text("#prompt-text")
    # Again, when everything is warm: within a second, as the machine allows.
    start = time.monotonic()
    write_skill(folders / "skills", "pdf", description="Signs treaties.")
    wait_for_text(page, "#prompt-diff .added", "Signs treaties.")
    assert time.monotonic() - start < 10


def test_a_broken_save_shows_on_any_page_and_the_last_version_answers(
    start_server, open_page, folders
):
    page = open_page(start_server(), "/tools/add")
    tools = folders / "plugins/demo/tools.py"
    good = tools.read_text()
    tools.write_text("import nothing_of_that_name\n")
    page.wait_for_selector("#problem-badge .failed")
    wait_for_text(page, "#newest-problem", "plugins/demo/tools.py")
    assert "nothing_of_that_name" in page.inner_text("#newest-problem")
    page.click("#fill")
    page.click("#call")
    wait_for_text(page, "#result .blocks", "2")
    page.goto(page.url.replace("/tools/add", "/problems"))
    wait_for_text(page, "#problems", "nothing_of_that_name")
    tools.write_text(good)
    wait_for_text(page, "#problems", "No errors and no warnings")
    assert page.query_selector("#problem-badge .failed") is None


def test_of_several_errors_the_newest_shows_and_a_stale_tool_says_why(
    start_server, open_page, folders, write_plugin
):
    write_plugin(folders / "plugins", "already-broken", tools="def nothing(:\n")
    page = open_page(start_server(), "/tools/add")
    wait_for_text(page, "#newest-problem", "already-broken")
    (folders / "plugins/demo/tools.py").write_text("import nothing_of_that_name\n")
    wait_for_text(page, "#newest-problem", "nothing_of_that_name")
    wait_for_text(page, "#about", "this is the last good one")
    page.click("#about a:has-text('What is wrong with demo')")
    wait_for_text(page, "#plugin-demo", "nothing_of_that_name")
    shutil.rmtree(folders / "plugins/already-broken")
    page.wait_for_selector("#plugin-already-broken", state="detached")
    assert "nothing_of_that_name" in page.inner_text("#newest-problem")


def test_two_windows_see_the_same_change(start_server, open_page, folders, write_skill):
    server = start_server()
    one, other = open_page(server), open_page(server, "/?kind=skill")
    write_skill(folders / "skills", "third")
    for page in (one, other):
        wait_for_text(page, "#results", "third")


def test_ten_pages_of_one_browser_share_a_stream(start_server, open_page, folders, write_skill):
    first = open_page(start_server(), "/?q=signs")
    pages = [first.context.new_page() for _ in range(9)]
    for page in pages:
        page.goto(first.url)
        wait_for_text(page, "#live-text", "live")
    first.close()  # it held the stream
    write_skill(folders / "skills", "treaty", description="Signs treaties.")
    for page in pages:
        wait_for_text(page, "#results", "treaty")


def test_the_page_finds_the_server_again_after_a_restart(
    start_server, open_page, folders, write_skill
):
    server = start_server()
    page = open_page(server)
    server.stop()
    page.wait_for_selector(".live.off")
    write_skill(folders / "skills", "meanwhile")
    start_server(server.address.port)
    page.wait_for_selector(".live.on")
    wait_for_text(page, "#results", "meanwhile")


def test_what_a_person_types_survives_a_change(start_server, open_page, folders, write_skill):
    page = open_page(start_server(), "/skills/pdf")
    page.fill("#text", page.input_value("#text") + "unsaved")
    write_skill(folders / "skills", "pdf", body="# From elsewhere\n")
    wait_for_text(page, "#edit-state", "changed on disk")
    assert page.input_value("#text").endswith("unsaved")
    page.click("#save")
    wait_for_text(page, "#toast", "changed on disk")
    page.click("#revert")
    assert "# From elsewhere" in page.input_value("#text")


def test_a_skill_is_linted_and_saved(start_server, open_page, folders):
    page = open_page(start_server(), "/skills/pdf")
    page.fill("#text", "---\nname: Bad Name\ndescription: x\n---\n# Typed\n")
    wait_for_text(page, "#lint", "Bad Name")
    wait_for_text(page, "#rendered h1", "Typed")
    page.fill("#text", "---\nname: pdf\ndescription: Saved.\n---\n# Typed\n")
    page.keyboard.press("Control+s")
    wait_for_text(page, "#toast", "Saved")
    assert "description: Saved." in (folders / "skills/pdf/SKILL.md").read_text()
    wait_for_text(page, "#skill-head", "Saved.")


def test_the_page_of_what_was_removed_says_so_until_it_is_there_again(
    start_server, open_page, folders, write_skill
):
    page = open_page(start_server(), "/skills/pdf")
    (folders / "skills/pdf/SKILL.md").unlink()
    wait_for_text(page, "#gone", "'pdf'")
    assert page.inner_text("#skill-head .chip") == "removed"
    write_skill(folders / "skills", "pdf", description="Back.")
    wait_for_text(page, "#skill-head", "Back.")
    assert (page.query_selector("#gone"), page.inner_text("#skill-head .chip")) == (None, "ok")


def test_the_help_has_the_keys_of_all_pages(start_server, open_page):
    page = open_page(start_server(), "/prompt")
    page.keyboard.press("?")
    for key in ("on Catalog and Timeline", "call a tool", "save a skill"):
        assert key in page.inner_text("#keys")


# ---- hostile content ----------------------------------------------------------------------------


def test_hostile_text_is_text_in_the_browser(start_server, open_page, folders, write_skill):
    text = json.dumps(HOSTILE)
    write_skill(
        folders / "skills", "evil", text=f"---\nname: evil\ndescription: {text}\n---\n{HOSTILE}\n"
    )
    (folders / "plugins/demo/tools.py").write_text(
        f"from satchel import tool\n@tool(description={HOSTILE!r})\n"
        f"def echo() -> str:\n    return {HOSTILE!r}\n"
    )
    server = start_server()
    page = open_page(server)
    for path in ("/", "/?q=evil", "/prompt", "/skills/evil", "/tools/echo"):
        page.goto(server.url + path)
        page.wait_for_selector(".live.on")
        assert page.query_selector("main script, main img") is None
    page.click("#call")
    wait_for_text(page, "#result .blocks", "<script>alert(1)</script>")
    assert "\\u202e" in page.inner_text("#result .blocks")
    assert page.query_selector("#result script, #result img") is None


def test_pictures_are_shown_and_calls_stream_and_end(start_server, open_page):
    server = start_server()
    page = open_page(server, "/tools/draw")
    page.click("#call")
    page.wait_for_function("() => document.querySelector('#result img')?.naturalWidth === 1")
    page.goto(server.url + "/tools/slow")
    page.click("#call")
    wait_for_text(page, "#result .streaming", "begun")
    page.click("#cancel")
    wait_for_text(page, "#result .chip", "interrupted")


def test_approval_is_asked_for_in_the_page(start_server, open_page):
    from satchel.runtime.middleware import approve

    server = start_server()
    server.bench.app.register_middleware(approve())
    page = open_page(server, "/tools/add")
    page.click("#fill")
    page.click("#call")
    page.wait_for_selector("#approval[open]")
    page.click("#approval button[value=no]")
    wait_for_text(page, "#result", "Not called.")
    page.click("#call")
    page.click("#approval button[value=yes]")
    wait_for_text(page, "#result .blocks", "2")


def test_a_plan_asks_for_approval_in_the_page(start_server, open_page):
    from satchel.runtime.middleware import approve

    server = start_server()
    server.bench.app.register_middleware(approve())
    page = open_page(server, "/sessions/1")
    page.fill("#plan", '[{"name": "add", "arguments": {"a": 41}}]')
    page.click("#run-plan")
    page.wait_for_selector("#approval[open]")
    assert page.inner_text("#approval-calls") == "add"
    page.click("#approval button[value=no]")
    wait_for_text(page, "#plan-result", "Not run.")
    page.click("#run-plan")
    page.click("#approval button[value=yes]")
    wait_for_text(page, "#plan-result", "42")


# ---- forms --------------------------------------------------------------------------------------


def signatures() -> list[tuple[str, dict]]:
    """Return the schemas of the dialect tests."""
    import sys

    from satchel.tools import FunctionTool

    spec = importlib.util.spec_from_file_location("form_signatures", SIGNATURES)
    module = importlib.util.module_from_spec(spec)
    sys.modules["form_signatures"] = module  # pydantic looks up the module of a model
    spec.loader.exec_module(module)
    functions = {
        name: value
        for name, value in vars(module).items()
        if callable(value) and getattr(value, "__module__", "") == "form_signatures"
        if not isinstance(value, type)
    }
    return [(name, FunctionTool(value).parameters) for name, value in sorted(functions.items())]


def test_the_form_makes_valid_arguments_for_every_schema(start_server, open_page):
    import jsonschema_rs

    page = open_page(start_server(), "/tools/add")
    created = """([schema, all]) => {
      const root = { type: "object", properties: {}, ...schema };
      const form = fieldFor(root, root, "arguments");
      form.write(sample(root, root, all));
      return form.read();
    }"""
    schemas, faults = signatures(), []
    assert len(schemas) >= 60
    for name, schema in schemas:
        for is_full in (False, "items", True):
            value = page.evaluate(created, [schema, is_full])
            validator = jsonschema_rs.validator_for(schema)
            if not validator.is_valid(value):
                errors = [error.message for error in validator.iter_errors(value)]
                faults.append((name, is_full, value, errors))
    assert faults == []


FORMATS = (
    "date time date-time duration email idn-email hostname uri uri-reference uuid ipv4 ipv6 regex"
)
PATTERNS = [
    *(r"^[A-Z]{3}-\d{4}$", r"^(foo|bar){2}$", r"^\+[1-9]\d{6,14}$", r"^[0-9a-f]{40}$"),
    *(r"^v\d+\.\d+\.\d+(?:-[a-z]+)?$", r"^(?!x)[^\s,]{5}$", r"^INV-[0-9]{6}$", r"\.py$"),
    *(r"^[\w.-]+/[\w.-]+@\w{7}$", r"^(?<year>\d{4})/Q[1-4]$", r"^arn:aws:s3:::[a-z\]]+$"),
]


def test_examples_of_the_form_fit_formats_and_patterns(start_server, open_page):
    import jsonschema_rs

    page = open_page(start_server(), "/tools/add")
    schemas = [{"type": "string", "format": name} for name in FORMATS.split()]
    schemas += [{"type": "string", "pattern": pattern} for pattern in PATTERNS]
    schemas += [{"type": "string", "pattern": "^[a-z-]+$", "minLength": 30, "maxLength": 40}]
    schemas += [{"type": "string", "format": "uri", "pattern": "^https://"}]
    values = page.evaluate("(all) => all.map((one) => sample(one, one))", schemas)
    faults = [
        (schema, value)
        for schema, value in zip(schemas, values, strict=True)
        if not jsonschema_rs.validator_for(schema, validate_formats=True).is_valid(value)
    ]
    assert faults == []


def test_a_form_shows_nested_parts_and_writes_the_same_call_elsewhere(
    start_server, open_page, folders
):
    (folders / "plugins/demo/tools.py").write_text(
        "from dataclasses import dataclass\nfrom typing import Literal\nfrom satchel import tool\n"
        "@dataclass\nclass Place:\n    city: str\n    country: Literal['NO', 'SE'] = 'NO'\n"
        "@tool\ndef go(place: Place, stops: list[str] = [], fast: bool = False) -> str:\n"
        "    return f'{place} {stops} {fast}'\n"
    )
    page = open_page(start_server(), "/tools/go")
    page.fill("[aria-label=city]", 'Oslo\'s "old" town')
    page.click("text=+ country")
    page.select_option("[aria-label=country]", label="SE")
    page.click("text=+ stops")
    page.click("text=Add to stops")
    page.fill("[aria-label='stops 1']", "Bergen")
    page.click("text=+ fast")
    page.check("[aria-label=fast]")
    page.keyboard.press("Control+Enter")
    wait_for_text(page, "#result .blocks", "country='SE') ['Bergen'] True")
    command = page.inner_text("#as-command")
    assert command.startswith('satchel call go --skills skills --args \'{"place":')
    assert """'"'"'""" in command
    python = page.inner_text("#as-python")
    compile(python, "page", "exec")
    assert '"fast": True' in python
    page.click("[aria-label='Leave out fast']")
    assert "fast" not in page.inner_text("#as-python")
    page.click("#raw summary")
    page.fill("#json", '{"place": {"city": "Paris"}}')
    assert page.input_value("[aria-label=city]") == "Paris"


def test_a_field_with_a_format_is_left_out_until_it_is_filled(start_server, open_page, folders):
    (folders / "plugins/demo/tools.py").write_text(
        "from datetime import date, time\nfrom satchel import tool\n"
        "@tool\ndef meet(name: str, day: date, at: time) -> str:\n    return f'{name} {day} {at}'\n"
    )
    page = open_page(start_server(), "/tools/meet")
    assert json.loads(page.input_value("#json")) == {"name": ""}
    page.fill("[aria-label=day]", "2026-01-31")
    page.fill("[aria-label=at]", "12:30:00")
    page.click("#call")
    wait_for_text(page, "#result .blocks", "2026-01-31 12:30:00")
    page.fill("[aria-label=day]", "")
    assert "day" not in json.loads(page.input_value("#json"))


def test_large_integers_keep_their_digits(start_server, open_page, folders):
    (folders / "plugins/demo/tools.py").write_text(
        "from satchel import tool\n@tool\ndef big(n: int) -> dict:\n    return {'twice': 2 * n}\n"
    )
    number, server = 12345678901234567890, start_server()
    page = open_page(server, "/tools/big")
    page.fill("[aria-label=n]", str(number))
    page.click("#call")
    wait_for_text(page, "#result", str(2 * number))
    assert str(2 * number) in page.text_content("#result details pre")
    assert f'"n": {number}' in page.input_value("#json")
    assert f'{{"n":{number}}}' in page.inner_text("#as-command")
    assert f'"n": {number}' in page.inner_text("#as-python")
    page.click("#raw summary")
    page.fill("#json", f'{{"n": {number + 1}}}')
    assert page.input_value("[aria-label=n]") == str(number + 1)
    page.goto(server.url + "/sessions/1")
    page.fill("#plan", f'[{{"name": "big", "arguments": {{"n": {number}}}}}]')
    page.click("#run-plan")
    wait_for_text(page, "#plan-result", str(2 * number))


# ---- session ------------------------------------------------------------------------------------


def test_a_conversation_can_be_held_by_hand(start_server, open_page):
    page = open_page(start_server(), "/sessions/1")
    page.click("#take-step")
    wait_for_text(page, "#steps", "step 1")
    page.fill("#skill", "pdf")
    page.keyboard.press("Enter")
    wait_for_text(page, "#skill-text", "# PDF")
    wait_for_text(page, "#loaded", "pdf")
    page.wait_for_function("() => document.querySelector('#state').value.includes('pdf')")
    page.fill("#plan", '[{"name": "add", "arguments": {"a": 41}}]')
    page.click("#check-plan")
    wait_for_text(page, "#plan-result", "would run")
    page.click("#run-plan")
    wait_for_text(page, "#plan-result", "42")
    page.fill("#plan", "[{oops")
    page.click("#check-plan")
    wait_for_text(page, "#toast", "The plan is not JSON")
    assert page.inner_text("#plan-result") == ""
    page.click("#save-state")
    page.wait_for_function("() => document.querySelector('#state').value.includes('pdf')")


@pytest.mark.parametrize("path", ["/tools/add", "/sessions/1", "/skills/pdf"])
def test_a_read_only_page_offers_nothing_that_it_refuses(start_server, open_page, path):
    page = open_page(start_server(read_only=True), path)
    assert not page.is_visible("main button:text-matches('^(Call|Run|Save|Load|Take a step)$')")
    for text in ("Ctrl+Enter calls", "Contracts judge them"):
        assert not page.is_visible(f"text={text}")
    for field in page.query_selector_all("#session-groups input, #text, #state"):
        assert not field.is_editable()


# ---- many skills --------------------------------------------------------------------------------


@pytest.fixture
def many_skills(folders, write_skill):
    words = "invoice deploy review audit budget legal brand network incident data".split()  # noqa: SIM905
    for number in range(5_000):
        text = f"{words[number % 10]} {words[number // 10 % 10]} number {number}"
        write_skill(folders / "skills", f"skill-{number:04}", description=text)


def test_five_thousand_skills_scroll_and_filter(many_skills, start_server, open_page):
    page = open_page(start_server())
    wait_for_text(page, "#results", "5,00")
    assert len(page.query_selector_all("#results a.row")) == 100
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    page.wait_for_function("() => document.querySelectorAll('#results a.row').length >= 200")
    page.fill("#q", "number 4321")  # the index is made by now
    wait_for_text(page, "#results a.row", "skill-4321")
    # The best of many, with generous limits: other tests run at the same time.
    fetched = "async () => { const start = performance.now(); await (await fetch('/')).text();"
    firsts = [page.evaluate(f"{fetched} return performance.now() - start; }}") for _ in range(20)]
    assert min(firsts) < 400, firsts
    times = [1_000.0]
    for number in range(1_000, 1_040):
        if min(times) < 300:
            break
        page.fill("#q", f"skill-{number:04}")
        times.append(page.evaluate(SEEN_AFTER, ["#results a.row", f"skill-{number:04}"]))
    assert min(times) < 300, times
    assert "/?q=skill-10" in page.url


def test_a_search_does_not_wait_for_the_index(start_server, open_page, monkeypatch):
    import threading

    from satchel.web import workbench

    is_made, documents_of = threading.Event(), workbench.documents_of

    def slowly(catalog):
        assert is_made.wait(PATIENCE)
        return documents_of(catalog)

    monkeypatch.setattr(workbench, "documents_of", slowly)
    page = open_page(start_server(), "/?q=pdf")
    wait_for_text(page, "#results", "The search index is being made")
    wait_for_text(page, "#results a.row", "pdf")  # by its name
    page.fill("#q", "letters")
    wait_for_text(page, "#results", "Nothing matches")
    is_made.set()
    wait_for_text(page, "#results a.row", "mail")  # by its description, without typing again
    assert "index is being made" not in page.inner_text("#results")


# ---- keyboard and accessibility -----------------------------------------------------------------


def test_everything_is_reached_by_keyboard(start_server, open_page):
    page = open_page(start_server())
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.keyboard.press("/")
    page.keyboard.type("pdf")
    wait_for_text(page, "#results a.row", "pdf")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.textContent") == "pdf"
    page.keyboard.press("Enter")
    page.wait_for_url("**/skills/pdf")
    page.keyboard.press("g")
    page.keyboard.press("b")
    page.wait_for_url("**/problems")
    page.keyboard.press("?")
    page.wait_for_selector("#keys[open]")
    page.keyboard.press("Escape")
    page.wait_for_selector("#keys[open]", state="detached")


def test_a_tool_is_called_by_keyboard_alone(start_server, open_page):
    page = open_page(start_server(), "/tools/add")
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.getAttribute('aria-label')") == "a":
            break
    page.keyboard.type("5")
    page.keyboard.press("Control+Enter")
    wait_for_text(page, "#result .blocks", "6")


@pytest.fixture
def many_states(folders, write_skill, write_plugin):
    write_skill(folders / "skills", "bad", text="no front matter")
    write_skill(folders / "skills", "odd", text="---\nname: Odd\ndescription: x\n---\n")
    write_plugin(folders / "plugins", "broken", tools="import nothing_of_that_name")


@pytest.mark.parametrize(("scheme", "width"), LOOKS)
def test_axe_finds_nothing_serious(many_states, start_server, open_page, scheme, width):
    server = start_server()
    page = open_page(server, color_scheme=scheme, viewport={"width": width, "height": 900})
    faults = []
    for path in EVERY_PAGE:
        page.goto(server.url + path)
        page.wait_for_selector(".live.on")
        faults += [(path, *fault) for fault in serious_faults(page)]
    assert faults == []


def test_an_idle_page_costs_no_processor(start_server, open_page):
    server = start_server()
    open_page(server)
    # The search index is made after the first page is shown.
    deadline = time.monotonic() + PATIENCE
    while server.bench._indexed is None and time.monotonic() < deadline:
        time.sleep(0.05)
    revision = server.bench.stream._revision
    before, start = time.process_time(), time.monotonic()
    time.sleep(3)
    share = (time.process_time() - before) / (time.monotonic() - start)
    assert share < 0.05, share
    assert server.bench.stream._revision == revision
