import inspect

import satchel
from satchel.plugins import hookspecs


def hooks():
    return {name: hook for name, hook in vars(hookspecs).items() if name.startswith("satchel_")}


def test_every_hook_says_what_to_return():
    assert set(hooks()) == {"satchel_tools", "satchel_groups", "satchel_skill_folders"}
    for hook in hooks().values():
        assert inspect.getdoc(hook).startswith("Return ")


def test_plugins_mark_their_hooks_with_the_one_that_satchel_offers():
    assert satchel.hookimpl is hookspecs.hookimpl
