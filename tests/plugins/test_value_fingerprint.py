from satchel.plugins.value_fingerprint import fingerprint


class Wordless:
    def __repr__(self):
        raise RuntimeError


def test_a_fingerprint_differs_when_a_value_does():
    thing = Wordless()
    assert fingerprint({"a": 1, "b": thing}) == fingerprint({"b": thing, "a": 1})
    assert fingerprint({"a": 1}) != fingerprint({"a": 2})
    assert fingerprint({"a": thing}) != fingerprint({"a": Wordless()})
