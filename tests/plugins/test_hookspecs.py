import inspect

import satchel
from satchel.plugins import hookspecs


def hooks():
    return {name: hook for name, hook in vars(hookspecs).items() if name.startswith("satchel_")}


TOLD = {"satchel_startup", "satchel_shutdown", "satchel_catalog_built"}


def test_every_hook_that_is_asked_says_what_to_return_and_takes_nothing():
    asked = {name: hook for name, hook in hooks().items() if name not in TOLD}
    assert len(asked) == 10
    for hook in asked.values():
        assert inspect.getdoc(hook).startswith("Return ")
        assert not inspect.signature(hook).parameters


def test_plugins_mark_their_hooks_with_the_one_that_satchel_offers():
    assert satchel.hookimpl is hookspecs.hookimpl
