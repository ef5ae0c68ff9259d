"""`satchel plugins`: what each plugin brings."""

import json
import re


def test_each_plugin_is_told_with_what_it_brings_and_the_time_of_its_import(run, toolkit):
    result = run("plugins", "--plugins", "plugins")
    demo = next(line for line in result.stdout.splitlines() if line.startswith("demo"))
    assert re.search(r"ok +plugins +\d tools?, 1 group +\d+ ms$", demo)
    (shape,) = [
        item
        for item in json.loads(run("plugins", "--plugins", "plugins", "--json").stdout)
        if item["name"] == "demo"
    ]
    assert "echo" in shape["tools"]
    assert shape["import_seconds"] > 0


def test_an_installed_plugin_that_nobody_enabled_is_available_and_not_imported(run):
    result = run("plugins")
    assert "available, not enabled" in result.stdout
    (shape,) = json.loads(run("plugins", "--json").stdout)
    assert (shape["name"], shape["state"], shape["import_seconds"]) == ("builtin", "disabled", None)


def test_a_plugin_that_failed_is_told_with_its_state(run, here, write_plugin):
    write_plugin(here / "plugins", "broken", tools="1/0")
    result = run("plugins", "--plugins", "plugins")
    assert re.search(r"^broken +failed", result.stdout, re.MULTILINE)
    assert "1 error" in result.stderr
