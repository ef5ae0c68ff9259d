"""What is said of signatures that are not checked."""

from satchel.setup.artefact_signatures import signature_note


def test_a_signature_beside_a_file_is_named_and_not_believed(tmp_path):
    wheel = tmp_path / "a.whl"
    wheel.touch()
    assert signature_note(str(wheel)) == "no signature was checked; none lies beside it"
    (tmp_path / "a.whl.sigstore.json").write_text("{}")
    expected = "no signature was checked; a.whl.sigstore.json lies beside it"
    assert signature_note(str(wheel)) == expected
    assert signature_note("https://x.example/a.whl") == "no signature was checked"
