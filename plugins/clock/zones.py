"""Parse time zones and dates as a model writes them."""

import difflib
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from satchel import ToolError


def zone(name: str) -> tzinfo:
    """Return a time zone. Raises `ToolError` with similar names."""
    if name.upper() in {"UTC", "Z"}:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ToolError(_no_such_zone(name)) from None


def moment(text: str, zone_name: str) -> datetime:
    """Parse an ISO date or time; without an offset it is in the given zone.

    Raises `ToolError` for other text.
    """
    try:
        parsed = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ToolError(f"{text!r} is not a time; write it like 2026-03-29T14:30.") from None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=zone(zone_name))


def shifted(time: datetime, target: tzinfo) -> datetime:
    """Return the same moment in another zone. Raises `ToolError` outside the years 1 to 9999."""
    try:
        return time.astimezone(target)
    except OverflowError:
        raise ToolError("That time is outside the years 1 to 9999.") from None


def _no_such_zone(name: str) -> str:
    zones = available_timezones()
    if not zones:
        return "This machine has no time zone database; only UTC can be used."
    wanted = name.replace(" ", "_").casefold()
    # A model often knows the city and guesses the continent.
    same_city = [item for item in sorted(zones) if item.casefold().endswith(f"/{wanted}")]
    near = same_city or difflib.get_close_matches(name, sorted(zones), n=3)
    hint = f"Did you mean {', '.join(near)}?" if near else "Use a name such as Europe/Oslo."
    return f"There is no time zone {name!r}. {hint}"
