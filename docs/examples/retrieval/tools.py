"""The tool of the retrieval plugin, with a few documents in place of a search engine."""

from collections.abc import Sequence

from satchel import tool

LIBRARIES = {
    "handbook": {
        "tides": "The tide is high twice a day.",
        "moon": "The moon pulls at the sea.",
        "ropes": "Wet ropes shrink.",
    },
    "kitchen": {"bread": "Bread needs an hour to rise."},
}
WEB = {"news": "The tide reached a mark today.", "shop": "Ropes are sold by the metre."}


@tool
def retrieve(
    *,
    limit: int,
    library: str,
    query: str = "",
    ids: Sequence[str] = (),
    bundled: bool = False,
    web: bool = False,
) -> list[dict[str, str]]:
    """Find documents."""
    library_documents = {**LIBRARIES.get(library, {}), **(WEB if web else {})}
    matches = {
        key: text
        for key, text in library_documents.items()
        if key in ids or (query and query in text.lower())
    }
    documents = [{"id": key, "text": text} for key, text in matches.items()][:limit]
    if not bundled:
        return documents
    joined = " ".join(item["text"] for item in documents)
    return [{"id": "+".join(item["id"] for item in documents), "text": joined}]
