"""The tools of the clock plugin."""

from datetime import UTC, datetime

from satchel import tool

from .zones import moment, shifted, zone


@tool
def current_time(timezone: str = "UTC") -> dict[str, str]:
    """Return the current date, weekday and time.

    Args:
        timezone: Name of the time zone, such as Europe/Oslo.
    """
    return _as_dict(datetime.now(zone(timezone)))


@tool
def convert_time(time: str, source: str, target: str) -> dict[str, str]:
    """Convert a time from one time zone to another, daylight saving time included.

    Args:
        time: Date and time like 2026-03-29T14:30. An offset in it takes precedence over `source`.
        source: Name of the time zone that the time is given in, such as America/New_York.
        target: Name of the time zone to convert to.
    """
    return _as_dict(shifted(moment(time, source), zone(target)))


@tool
def time_between(start: str, end: str, timezone: str = "UTC") -> dict[str, float | int]:
    """Return the time from one date or time to another; negative if the end comes first.

    Args:
        start: Date or time like 2026-03-29 or 2026-03-29T14:30.
        end: Date or time in the same form.
        timezone: Name of the time zone of times without an offset.
    """
    first, last = moment(start, timezone), moment(end, timezone)
    # In UTC, because local days are 23 or 25 hours long twice a year.
    seconds = (shifted(last, UTC) - shifted(first, UTC)).total_seconds()
    return {
        "calendar_days": (last.date() - first.date()).days,
        "hours": round(seconds / 3600, 4),
        "seconds": seconds,
    }


def _as_dict(time: datetime) -> dict[str, str]:
    return {
        "time": time.isoformat(timespec="seconds"),
        "weekday": f"{time:%A}",
        "timezone": str(time.tzinfo),
    }
