"""A package whose name is nearly that of a well-known one is found where it is installed."""

import pytest

from satchel.scan.file_scanner import scan_text


@pytest.mark.parametrize(
    "text",
    [
        *("pip install reqeusts", "uv add numpyy", "npm i expres body-parser", "npx -y eslnt"),
        *("pip3 install -U pandas python_dateutils==2.9", "urlib3==2.2.1", '"lodahs": "^4.17.0"'),
    ],
)
def test_a_name_that_is_a_letter_away_is_found(text):
    assert [item.rule for item in scan_text(text)] == ["misspelled-package"]


@pytest.mark.parametrize(
    "text",
    [
        *("pip install requests grequests psycopg scapy", "npm install react preact lodash-es"),
        *("`reqeusts` is not `requests`", "Never run `pip install reqeusts`.", "npx foo serve"),
        *("npm install -D prettier # reqeusts", "requests[socks]==2.32"),
    ],
)
def test_honest_names_are_left_alone(text):
    assert [*scan_text(text)] == []
