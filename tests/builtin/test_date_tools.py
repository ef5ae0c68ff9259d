import re
from datetime import date

import pytest

from satchel.builtin.date_tools import dates_from, get_today_date


def test_a_day_comes_with_the_days_around_it():
    week = {
        "Saturday": "2026-03-28",
        "Sunday": "2026-03-29",
        "Monday": "2026-03-30",
        "Tuesday": "2026-03-31",
        "Wednesday": "2026-04-01",
        "Thursday": "2026-04-02",
        "Friday": "2026-04-03",
    }
    assert dates_from(date(2026, 3, 27)) == {
        "today": "2026-03-27",
        "year": "2026",
        "weekday": "Friday",
        "tomorrow": "2026-03-28",
        "day_after_tomorrow": "2026-03-29",
        "next_seven_days": week,
        "next_7_days_by_weekday": week,
        "in_one_week": "2026-04-03",
        "one_week_from_now": "2026-04-03",
        "in_two_weeks": "2026-04-10",
        "two_weeks_from_now": "2026-04-10",
    }


@pytest.mark.parametrize(
    ("today", "tomorrow"),
    [
        (date(2028, 2, 28), "2028-02-29"),
        (date(2027, 2, 28), "2027-03-01"),
        (date(2026, 12, 31), "2027-01-01"),
    ],
)
def test_leap_days_and_the_end_of_the_year_are_reckoned(today, tomorrow):
    assert dates_from(today)["tomorrow"] == tomorrow


def test_the_tool_returns_the_day_of_the_local_clock():
    before = date.today()  # noqa: DTZ011 - the local day is what is meant
    messages = get_today_date()
    after = date.today()  # noqa: DTZ011
    assert messages in (dates_from(before), dates_from(after))
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", messages["today"])
