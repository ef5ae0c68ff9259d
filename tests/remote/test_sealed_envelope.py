"""Messages between hosts and workers can be read and made only with their key."""

import pytest

pytest.importorskip("docket", reason="pydocket is not installed")

from satchel.errors import DefinitionError
from satchel.remote.sealed_envelope import EnvelopeError, as_text, checked_key, open_sealed, seal

KEY, OTHER = b"0123456789abcdef", b"0123456789abcdeg"
BODY = {"token": "secret-token", "list": [1, "é"]}


@pytest.mark.parametrize("form", [bytes, as_text])
def test_a_message_is_opened_with_its_key_and_shows_nothing_without(form):
    message = form(seal(KEY, "call", BODY))
    assert open_sealed(KEY, "call", message) == BODY
    shown = message if isinstance(message, bytes) else message.encode()
    assert b"secret" not in shown
    for key, kind in ((OTHER, "call"), (KEY, "item")):
        with pytest.raises(EnvelopeError, match="not encrypted with our key"):
            open_sealed(key, kind, message)


def test_the_same_message_looks_different_each_time():
    assert seal(KEY, "call", BODY) != seal(KEY, "call", BODY)


def test_no_byte_of_a_message_can_be_changed_or_left_out():
    message = seal(KEY, "item", BODY)
    for place in range(len(message)):
        changed = bytearray(message)
        changed[place] ^= 1
        for wrong in (bytes(changed), message[:place], message[place + 1 :]):
            with pytest.raises(EnvelopeError):
                open_sealed(KEY, "item", wrong)


@pytest.mark.parametrize("message", ["", "satchel/4", "satchel/3 é", "satchel/3 AA", b"", b"\xff"])
def test_what_is_no_message_is_refused(message):
    with pytest.raises(EnvelopeError):
        open_sealed(KEY, "item", message)


def test_a_key_that_could_be_guessed_is_refused():
    with pytest.raises(DefinitionError, match="fewer than 16"):
        checked_key("short key       \n")
