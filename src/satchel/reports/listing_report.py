"""Say which form the skill listing of the prompt has, and what would change it."""

from dataclasses import replace
from typing import TYPE_CHECKING

from satchel.prompt.listing_words import ListingForm
from satchel.reports.short_texts import count

if TYPE_CHECKING:
    from satchel.prompt.skill_listing import PromptListing
    from satchel.session.session import Session


def listing_report(session: "Session") -> str:
    """Return the form of the listing, and what would make it fuller; `""` without skills."""
    listing = session.step().skill_listing
    if not listing.total:
        return ""
    style = session.skill_style
    unit = "characters" if style.measure is len else "tokens"
    form = f"skill listing: {_form(listing)}"
    if listing.form is ListingForm.FULL:
        return form
    session.skill_style = replace(style, budget=None)
    needed = style.measure(session.step().skill_prompt())
    session.skill_style = style
    is_whole = listing.form is ListingForm.LINES and listing.cut_at is None
    advice = "also show each skill's folder" if is_whole else "show all descriptions in full"
    hints = [f"{needed:,} would {advice}"]
    if listing.form is ListingForm.NAMES or listing.cut_at is not None:
        hints.append("you can also disable skills, or put them into groups")
    if listing.form is ListingForm.NAMES:
        hints.append("[skills] first in satchel.toml chooses which skills are described")
    return f"{form}; the budget is {style.budget:,} {unit}; {'; '.join(hints)}"


def _form(listing: "PromptListing") -> str:
    skills = count(listing.total, "skill")
    if listing.form is ListingForm.FULL:
        return f"{skills} in full"
    if listing.form is ListingForm.LINES:
        if listing.cut_at is None:
            return f"{skills} in lines, descriptions in full"
        return f"{skills} in lines, descriptions cut at {listing.cut_at} characters"
    named = listing.total - listing.described - listing.left_out
    missing = f", {listing.left_out:,} are not named" if listing.left_out else ""
    verb = "has" if listing.described == 1 else "have"
    described = f"{listing.described:,} {verb} a description"
    return f"of {skills}, {described}, {named:,} only a name{missing}"
