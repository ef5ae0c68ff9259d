"""Time zones and dates as a model writes them."""

import difflib
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from satchel import ToolError


def zone(name: str) -> tzinfo:
    """Return a time zone. Raises `ToolError` with names that look alike."""
    if name.upper() in {"UTC", "Z"}:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ToolError(_no_such_zone(name)) from None


def moment(text: str, zone_name: str) -> datetime:
    """Read an ISO date or time; one without an offset is meant in the zone that is named.

    Raises `ToolError` for anything else.
    """
    try:
        read = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ToolError(f"{text!r} is not a time; write it like 2026-03-29T14:30.") from None
    return read if read.tzinfo else read.replace(tzinfo=zone(zone_name))


def shifted(time: datetime, target: tzinfo) -> datetime:
    """Return the same moment in another zone. Raises `ToolError` at the ends of the calendar."""
    try:
        return time.astimezone(target)
    except OverflowError:
        raise ToolError("That time is outside the years 1 to 9999.") from None


def _no_such_zone(name: str) -> str:
    known = available_timezones()
    if not known:
        return "This machine has no time zone database; only UTC can be used."
    wanted = name.replace(" ", "_").casefold()
    # A model often knows the city and guesses the continent.
    same_city = [item for item in sorted(known) if item.casefold().endswith(f"/{wanted}")]
    near = same_city or difflib.get_close_matches(name, sorted(known), n=3)
    hint = f"Did you mean {', '.join(near)}?" if near else "Use a name such as Europe/Oslo."
    return f"There is no time zone {name!r}. {hint}"
