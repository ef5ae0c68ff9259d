"""Today's date and the dates of the next days, so that the model does not calculate them."""

from datetime import UTC, date, datetime, timedelta

from satchel.tools import tool

# Not by strftime: its names depend on the host's locale.
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@tool(annotations={"readOnlyHint": True})
def get_today_date() -> dict[str, str | dict[str, str]]:
    """Return today's date and weekday, and the dates of the next seven days and in 1 or 2 weeks."""
    return dates_from(datetime.now(UTC).astimezone().date())


def dates_from(today: date) -> dict[str, str | dict[str, str]]:
    """Return the dates that follow a day, in ISO 8601.

    Some are there under two names: prompts written for other toolkits use the second.
    """
    days = [today + timedelta(days=ahead) for ahead in range(15)]
    week = {_weekday(day): day.isoformat() for day in days[1:8]}
    return {
        "today": today.isoformat(),
        "year": str(today.year),
        "weekday": _weekday(today),
        "tomorrow": days[1].isoformat(),
        "day_after_tomorrow": days[2].isoformat(),
        "next_seven_days": week,
        "next_7_days_by_weekday": week,
        "in_one_week": days[7].isoformat(),
        "one_week_from_now": days[7].isoformat(),
        "in_two_weeks": days[14].isoformat(),
        "two_weeks_from_now": days[14].isoformat(),
    }


def _weekday(day: date) -> str:
    return _WEEKDAYS[day.weekday()]
