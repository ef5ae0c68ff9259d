"""What a lock file says of a place."""

import pytest

from satchel.loader.lock_entries import LockPlaces


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/home/me/work/skills/pdf", "skills/pdf"),
        ("/home/me/more/skills/pdf", "~/more/skills/pdf"),
        ("/srv/more/skills/pdf", "skills/pdf"),
        ("/srv/more/skills/deep/pdf", "deep/pdf"),
    ],
)
def test_a_place_is_named_without_the_parts_that_differ_between_machines(path, place):
    assert LockPlaces(base="/home/me/work", home="/home/me").of(path) == place
