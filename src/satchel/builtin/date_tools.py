"""The date of today and of the days around it, so that no model has to reckon."""

from datetime import UTC, date, datetime, timedelta

from satchel.tools import tool

# Not by strftime, which speaks the language that the host's locale sets.
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@tool(annotations={"readOnlyHint": True})
def get_today_date() -> dict[str, str | dict[str, str]]:
    """Tell today's date and weekday, the next seven days, and the days in one and two weeks."""
    return dates_from(datetime.now(UTC).astimezone().date())


def dates_from(today: date) -> dict[str, str | dict[str, str]]:
    """Return the dates around a day, as ISO 8601."""
    days = [today + timedelta(days=ahead) for ahead in range(15)]
    return {
        "today": today.isoformat(),
        "weekday": _weekday(today),
        "tomorrow": days[1].isoformat(),
        "next_seven_days": {_weekday(day): day.isoformat() for day in days[1:8]},
        "in_one_week": days[7].isoformat(),
        "in_two_weeks": days[14].isoformat(),
    }


def _weekday(day: date) -> str:
    return _WEEKDAYS[day.weekday()]
