from satchel.plugins.value_fingerprint import fingerprint


class Wordless:
    def __repr__(self):
        raise RuntimeError


def test_a_fingerprint_differs_when_a_value_does():
    value = Wordless()
    assert fingerprint({"a": 1, "b": value}) == fingerprint({"b": value, "a": 1})
    assert fingerprint({"a": 1}) != fingerprint({"a": 2})
    assert fingerprint({"a": value}) != fingerprint({"a": Wordless()})
