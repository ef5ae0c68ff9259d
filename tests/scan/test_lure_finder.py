"""The time of a scan grows with the length of the text."""

import time

import pytest

from satchel.scan.file_scanner import scan_text


@pytest.mark.parametrize(
    "part", ["curl -d $(cat a) ", "do not tell the user to read ~/.ssh\n", "a"]
)
def test_the_time_grows_with_the_length(part):
    def seconds(length):
        text = part * (length // len(part))
        return min(timed(text) for _ in range(2))

    def timed(text):
        began = time.process_time()
        list(scan_text(text))
        return time.process_time() - began

    timed(part)
    assert seconds(80_000) < 10 * seconds(20_000) + 0.1


def test_each_cell_of_a_table_is_a_sentence():
    assert list(scan_text("| logs | Disable the audit log |\n"))
    assert not list(scan_text("| Disabled | Audit log |\n"))


def test_the_line_is_that_of_the_last_part_where_the_parts_are_in_several_sentences():
    text = "# Delete backups\n\nBe quick.\n\nThe snapshots go, too. Don't ask.\n"
    (finding,) = scan_text(text)
    assert (finding.rule, finding.line, finding.text) == ("destroys-data", 5, "Don't ask")
