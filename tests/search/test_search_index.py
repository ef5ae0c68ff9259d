"""The index: what finds what, in which order, whatever is asked and whatever happened before."""

import gc
import sqlite3
import subprocess
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.errors import ToolError
from satchel.formats.skill_manifest import read_skill
from satchel.search.search_index import SearchDocument, SearchHit, SearchIndex
from satchel.settings import Limits


def tool(name: str, description: str = "", keywords: str = "") -> SearchDocument:
    return SearchDocument(kind="tool", name=name, description=description, more=keywords)


def skill(name: str, description: str = "", keywords: str = "") -> SearchDocument:
    return SearchDocument(kind="skill", name=name, description=description, more=keywords)


def index_of(*documents: SearchDocument) -> SearchIndex:
    index = SearchIndex()
    index.bring_up_to_date(documents)
    return index


def names(hits: list[SearchHit]) -> list[str]:
    return [hit.name for hit in hits]


def found(words: str, *documents: SearchDocument) -> list[str]:
    return names(index_of(*documents).search(words))


WORLD = (
    skill("pdf", "Converts PDF files to text, and fills in forms."),
    skill("brand-guidelines", "Applies the colours of the brand to a text."),
    skill("release-notes", "Writes release notes for a version. Use it to tell of a change."),
    skill("image-tools", "Converts a picture to another format."),
    tool("geocodeAddress", "Find the coordinates of a place."),
    tool("get_weather", "Weather for the next days.", "city City name, in English."),
    tool("http-fetch", "Read a page of the web."),
)


@pytest.fixture
def world():
    return index_of(*WORLD)


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ("convert a pdf to text", "pdf"),
        ("what is the weather", "get_weather"),
        ("weather forecasts", "get_weather"),
        ("writing a release note", "release-notes"),
        ("city", "get_weather"),
        ("GEOCODE", "geocodeAddress"),
        ("geo", "geocodeAddress"),
        ("address", "geocodeAddress"),
        ("geocode_address", "geocodeAddress"),
        ("geocodeaddress", "geocodeAddress"),
        ("getWeather", "get_weather"),
        ("http", "http-fetch"),
        ("httpFetch", "http-fetch"),
        ("converting pictures", "image-tools"),
    ],
)
def test_what_fits_best_comes_first(world, words, first):
    assert names(world.search(words))[0] == first


@pytest.mark.parametrize("words", ["pfd", "brnad", "gecode", "wether", "http-fecth", "relaese"])
def test_a_mistyped_name_is_found(world, words):
    assert world.search(words)


def test_what_looks_like_nothing_finds_nothing(world):
    assert world.search("quantum") == []
    assert world.search("quantum for this") == []


def test_small_words_count_only_where_there_are_no_others():
    documents = [skill("a", "The way to the top of the hill."), skill("b", "Bread.")]
    assert found("the bread", *documents) == ["b"]
    assert found("the", *documents) == ["a"]


def test_the_name_weighs_more_than_the_description_and_that_more_than_the_rest():
    fillers = [skill(f"other-{number}", "Nothing much.") for number in range(9)]
    documents = [
        skill("one", "Some thing.", "maps"),
        skill("two", "Some maps.", "thing"),
        skill("maps", "Some thing.", "two"),
    ]
    assert found("maps", *documents, *fillers) == ["maps", "two", "one"]


def test_a_whole_word_weighs_more_than_a_beginning():
    assert found("text", skill("a", "Textile."), skill("b", "Text."), skill("c")) == ["b", "a"]


def test_the_exact_name_comes_first_however_often_others_say_it():
    documents = [
        skill("api", "word " * 200),
        *(skill(f"api-api-{number}", "api " * 20) for number in range(5)),
    ]
    hits = index_of(*documents).search(" API ")
    assert hits[0].name == "api"
    assert hits == sorted(hits, key=lambda hit: -hit.score)


def test_equals_come_in_the_order_of_their_names():
    documents = [skill(f"n{number}", "the same") for number in (3, 1, 2)]
    documents += [tool("n1", "the same")]
    hits = index_of(*documents).search("same")
    assert [(hit.name, hit.kind) for hit in hits] == [
        *(("n1", "skill"), ("n1", "tool"), ("n2", "skill"), ("n3", "skill")),
    ]
    assert len({hit.score for hit in hits}) == 1


def test_a_kind_and_a_limit_are_kept(world):
    assert {hit.kind for hit in world.search("text page weather", "tool")} == {"tool"}
    assert {hit.kind for hit in world.search("fecth", "tool")} == {"tool"}
    assert world.search("pdf", "tool") == []
    assert world.search("pdf", "\ud800") == []
    everything = world.search("convert colours version weather page", limit=100)
    assert len(everything) == 6
    assert world.search("convert colours version weather page", limit=2) == everything[:2]
    assert world.search("pdf", limit=0) == world.search("pdf", limit=-1) == []


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("cafe", "Der Café-Führer"),
        ("CAFÉ", "cafe"),
        ("cafe\u0301", "Café"),
        ("strasse", "Straße"),
        ("\uff30\uff24\uff26", "pdf"),
        ("pd\u200bf", "pdf"),
        ("天气", "查询天气预报"),
        ("查天气", "天气预报"),
        ("气", "天气"),
        ("天气", "天 气"),
        ("pdf", "把PDF转换成文本"),
        ("トーキョー", "ﾄｰｷｮｰの天気"),
        ("погода", "Погода на завтра"),
        ("날씨", "날씨를 알려줍니다"),
    ],
)
def test_letters_of_every_script_find_their_like(words, text):
    assert found(words, skill("a", text), skill("b", "other")) == ["a"]


def test_what_has_no_blanks_is_found_by_neighbours_not_by_single_letters():
    assert found("天气", skill("a", "天气"), skill("b", "天空的空气")) == ["a"]


@pytest.mark.parametrize(
    "words",
    [
        *(
            "",
            " ",
            "\0",
            "\ud800",
            "😀",
            "👩‍👩‍👧",
            '"',
            "'",
            "*",
            "^",
            "-",
            "--",
            "( )",
            '""""',
            ";",
        ),
        *(
            "AND",
            "OR",
            "NOT",
            "NEAR",
            "+",
            ":",
            "{}",
            "a\0b",
            "%",
            "_",
            "\\",
            "?1",
            ":x",
            "x" * 10**6,
        ),
        *("ab " * 400_000, "天" * 10**6, "\n" * 10**6, '"' * 10**6, "\u0301" * 1000, "ﷺ" * 5000),
    ],
    ids=ascii,
)
def test_nothing_that_is_asked_raises(world, words):
    assert isinstance(world.search(words), list)


@pytest.mark.parametrize(
    "words",
    [
        *(
            '"pdf',
            "pdf*",
            "^pdf",
            "name:pdf",
            "NOT pdf",
            "pdf NOT files",
            "pdf AND",
            "NEAR(pdf x, 2)",
        ),
        *(
            "{name} : pdf",
            "-pdf",
            "pdf\0",
            "pdf)",
            "(pdf",
            "pdf; DROP TABLE documents",
            "\ud800 pdf",
        ),
    ],
    ids=ascii,
)
def test_operators_are_words_like_others(world, words):
    assert names(world.search(words))[0] == "pdf"


def test_of_a_long_query_the_beginning_counts(world):
    many = " ".join(f"w{number}" for number in range(10_000))
    assert names(world.search(f"pdf {many}")) == ["pdf"]
    assert "pdf" not in names(world.search(f"{many} pdf"))


def test_sqlite_is_loaded_when_something_is_first_held():
    code = (
        "import sys; from satchel.search.search_index import SearchDocument, SearchIndex\n"
        "index = SearchIndex(); index.search('pdf'); index.bring_up_to_date([])\n"
        "assert 'sqlite3' not in sys.modules\n"
        "index.bring_up_to_date([SearchDocument(kind='skill', name='pdf', description='')])\n"
        "assert 'sqlite3' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_document_may_hold_anything():
    odd = [skill("\ud800", "a\0b \ud800 zebra"), tool("", ""), skill("x" * 10**6, "y" * 10**6)]
    index = index_of(*odd)
    assert names(index.search("zebra")) == ["\ud800"]
    assert index.bring_up_to_date(odd) == 0
    assert index.bring_up_to_date([]) == 3


def test_only_what_differs_is_written():
    index = index_of(*WORLD)
    changed = skill("pdf", "Reads tables.")
    assert index.bring_up_to_date(WORLD) == 0
    assert index.bring_up_to_date([*reversed(WORLD[1:]), changed]) == 1
    assert names(index.search("tables")) == ["pdf"]
    assert index.search("fills") == []
    assert index.bring_up_to_date([*WORLD[1:], changed, tool("pdf"), tool("new")]) == 2
    assert index.bring_up_to_date([changed]) == 8
    assert names(index.search("pdf")) == ["pdf"]


def test_of_two_documents_of_one_name_the_later_counts():
    assert found("word", skill("a", "first word"), skill("a", "second")) == []


def test_kinds_have_names_of_their_own():
    hits = index_of(skill("maps"), tool("maps")).search("maps")
    assert [hit.kind for hit in hits] == ["skill", "tool"]


def test_an_empty_index_finds_nothing_and_a_closed_one_begins_again():
    index = SearchIndex()
    assert index.search("pdf") == []
    assert index.bring_up_to_date([]) == 0
    index.bring_up_to_date(WORLD)
    index.close()
    index.close()
    assert index.search("pdf") == []
    assert index.bring_up_to_date(WORLD) == len(WORLD)
    assert names(index.search("pdf")) == ["pdf"]


def test_an_index_that_is_not_closed_closes_itself(monkeypatch):
    closed = []

    class Connection(sqlite3.Connection):
        def close(self):
            closed.append(True)
            super().close()

    connect = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda *args, **options: connect(*args, factory=Connection, **options)
    )
    index = index_of(*WORLD)
    del index
    gc.collect()
    assert closed == [True]


def test_a_source_that_raises_changes_nothing(world):
    def broken():
        yield skill("new")
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        world.bring_up_to_date(broken())
    assert world.bring_up_to_date(WORLD) == 0


def test_many_threads_may_search_while_one_writes():
    index, faults = index_of(*WORLD), []
    start = threading.Barrier(5)

    def search():
        start.wait()
        try:
            for _ in range(100):
                assert names(index.search("pdf"))[0] == "pdf"
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    start.wait()
    for number in range(100):
        index.bring_up_to_date([*WORLD, skill("pdf", f"Version {number}.")])
    for thread in threads:
        thread.join()
    assert faults == []


WORDS = st.sampled_from(
    ["map", "maps", "mapping", "route", "天气", "the", "a", "pdf-tools", "getMap"]
)
TEXTS = st.lists(WORDS, max_size=5).map(" ".join)
DOCUMENTS = st.lists(
    st.builds(
        SearchDocument,
        kind=st.sampled_from(["tool", "skill"]),
        name=WORDS,
        description=TEXTS,
        more=TEXTS,
    ),
    max_size=6,
)


@given(st.lists(DOCUMENTS, min_size=1, max_size=5), TEXTS)
def test_after_any_history_the_answers_are_those_of_a_fresh_index(history, words):
    index = SearchIndex()
    for documents in history:
        index.bring_up_to_date(documents)
    fresh = index_of(*reversed(list({(d.kind, d.name): d for d in history[-1]}.values())))
    assert index.search(words) == fresh.search(words)


@given(st.lists(DOCUMENTS, min_size=2, max_size=2))
def test_what_was_written_is_counted(history):
    before, after = ({(d.kind, d.name): d for d in documents} for documents in history)
    index = index_of(*before.values())
    differing = [key for key in {*before, *after} if before.get(key) != after.get(key)]
    assert index.bring_up_to_date(after.values()) == len(differing)


ANYTHING = st.text(st.characters(exclude_categories=()))


@given(ANYTHING | st.text('"*^:(){}-+ANDORTE\0 pdf', max_size=20), st.lists(ANYTHING, max_size=3))
def test_any_text_is_searched_and_indexed(words, texts):
    index = index_of(*WORLD, *(skill(text, text, text) for text in texts))
    hits = index.search(words)
    assert all(hit.score > 0 for hit in hits)
    assert hits == index.search(words)


def test_real_skills_are_found_by_their_own_names(shared):
    real = {}
    for path in sorted((shared / "corpus").rglob("SKILL.md")):
        value = read_skill(path.read_bytes(), path.parent.name, str(path), Limits()).value
        if value is not None:
            real[value.name] = skill(value.name, value.description)
    index = index_of(*real.values())
    sample = list(real)[::7]
    assert len(sample) > 50
    for name in sample:
        assert names(index.search(name))[0] == name
        assert names(index.search(name.replace("-", " ")))[0] == name
    assert "convert-pdf-to-md" in names(index.search("convert a pdf to text", limit=3))


def test_a_python_without_full_text_search_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sqlite3", None)
    index = SearchIndex()
    with pytest.raises(ToolError, match="no module sqlite3 with FTS5"):
        index.bring_up_to_date([WORLD[0]])
