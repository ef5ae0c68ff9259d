import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.errors import DefinitionError
from satchel.names import (
    group_names,
    near_misses,
    plugin_name_fault,
    sentence_of,
    skill_name_fault,
    tidy_name,
    tool_name_fault,
    unsafe_name_fault,
)
from satchel.text import one_line


@pytest.mark.parametrize("name", ["pdf", "a", "3d-print", "a-b-c", "x" * 64])
def test_a_skill_name_of_the_format_has_no_fault(name):
    assert skill_name_fault(name) == ""
    assert unsafe_name_fault(name) == ""


@pytest.mark.parametrize(
    "name", ["", "PDF", "a_b", "-a", "a-", "a--b", "a b", "a\n", "é", "²", "x" * 65]
)
def test_any_other_skill_name_breaks_the_format(name):
    assert skill_name_fault(name)


@pytest.mark.parametrize(
    "name",
    [
        *("My Skill", "zoom/mcp", "C++", "été", "技能", "x" * 256, "a.b", "a:b"),
        *("二〇二四", "თბილისი", "תל\u05beאביב", "api-שלום", "日本go", "col·lecció", "Foo–Bar"),  # noqa: RUF001
        *("Office™", "½ price", "Wait…", "技能\uff1a写作", "a\uff0fb"),
    ],
)
def test_odd_names_of_real_skills_are_safe(name):
    assert unsafe_name_fault(name) == ""


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("", "empty"),
        (" \t", "empty"),
        ("x" * 257, "257"),
        ("a\nb", "control"),
        ("a\tb", "control"),
        ("a\x1b[2J", "control"),
        ("pd\u200bf", "invisible"),
        ("\u202epdf", "invisible"),
        (" pdf", "spaces"),
        ("pdf ", "spaces"),
        ("a  b", "spaces"),
        ("\uff50\uff44\uff46", "look-alike"),
        ("pd\u1da0", "look-alike"),
        ("2\u00b2", "look-alike"),
        ("\u2024\u2024/x", "look-alike"),
        ("\uff0d\uff0drf", "look-alike"),
        ("git\u2010commit", "look-alike"),
        ("git\u2011commit", "look-alike"),
        ("git\u2013commit", "look-alike"),
        ("git\u2212commit", "look-alike"),
        ("\u2212rf", "look-alike"),
        ("\u0262it-commit", "look-alike"),
        ("ᴘᴅꜰ", "look-alike"),
        ("git-c\u10ffmmit", "alphabet"),
        ("git\u05becommit", "alphabet"),
        ("git-c\u3007mmit", "alphabet"),
        ("g\u01c0t-commit", "alphabet"),
        ("git-c\u101dmmit", "alphabet"),
        *((f"git{stroke}commit", "alphabet") for stroke in "\u2024\u3161\u1173\u4e00\u06d4"),
        *((f"git{stroke}commit", "alphabet") for stroke in "\u31d0\u4e28\u3163\u3127\ua789"),
        ("git\u4e00\u4e00commit2", "alphabet"),
        ("\uff0fetc", "look-alike"),
        ("..", "part"),
        (".hidden", "part"),
        ("-rf", "part"),
        ("/etc", "part"),
        ("a//b", "part"),
        ("a/../b", "part"),
        ("a\\..\\b", "part"),
        ("a/", "part"),
    ],
)
def test_a_name_that_could_pass_for_something_else_is_unsafe(name, word):
    assert word in unsafe_name_fault(name)


@pytest.mark.parametrize(
    "name",
    [
        "g\u0456t-commit",
        "g\u03bfogle",
        "\u0440df",
        "\u0570ello",
        "\u13dakill",
        "\u0441\u043e\u0440\u0443-file",
        "git-c\u0ed0mmit",
        "git\u30fccommit",
    ],
)
def test_a_name_of_letters_that_look_alike_is_unsafe_and_shown_with_escapes(name):
    assert ascii(name) in unsafe_name_fault(name)


@pytest.mark.parametrize(
    "name",
    [
        *("git-коммит", "данные", "web-поиск", "excel-с-python", "git-Ελλάδα", "λ-calc", "µm-tool"),  # noqa: RUF001
        *("Файлы – поиск", "My Skill \u2013 v2", "данные\u2013поиск"),  # noqa: RUF001
        *("pdf一键转换", "pdf转word", "go与rust", "第一go", "pdf-ㅋㅋ", "Foo・Bar"),
        *("データ分析", "pdf処理", "한국어-pdf", "نص-pdf", "हिन्दी", "ışık", "naïve", "Über"),  # noqa: RUF001
    ],
)
def test_a_name_in_another_alphabet_is_honest(name):
    assert unsafe_name_fault(unicodedata.normalize("NFC", name)) == ""


def test_names_that_must_be_ascii_are_shown_with_escapes():
    assert "'g\\u0456t'" in tool_name_fault("g\u0456t")
    assert "'g\\u0456t'" in plugin_name_fault("g\u0456t")


@given(st.text())
def test_a_safe_name_is_shown_just_as_it_is_and_passes_for_none_of_the_format(name):
    if not unsafe_name_fault(name):
        assert one_line(name) == name
        folded = unicodedata.normalize("NFKC", name)
        assert folded == name or skill_name_fault(folded)


@pytest.mark.parametrize(
    ("name", "tidy"),
    [("cafe\u0301", "café"), (" a \t\n b\xa0\u3000c ", "a b c"), ("Office™", "Office™"), (" ", "")],
)
def test_a_tidy_name_has_single_blanks_and_composed_letters(name, tidy):
    assert tidy_name(name) == tidy


@given(st.text())
def test_a_tidy_name_stays_as_it_is_and_only_edges_can_make_one_of_the_format(name):
    tidy = tidy_name(name)
    assert tidy_name(tidy) == tidy
    if not skill_name_fault(tidy):
        assert tidy == name.strip()


@given(st.from_regex(r"[a-z0-9-]+", fullmatch=True))
def test_a_name_of_the_format_is_always_safe(name):
    if not skill_name_fault(name):
        assert not unsafe_name_fault(name)


@pytest.mark.parametrize("name", ["f", "_f", "get_weather", "a-b", "X" * 64])
def test_a_tool_name_that_every_provider_takes_has_no_fault(name):
    assert tool_name_fault(name) == ""


@pytest.mark.parametrize("name", ["", "1f", "-f", "a.b", "a b", "é", "a\n", "x" * 65])
def test_any_other_tool_name_has_one(name):
    assert tool_name_fault(name)


@pytest.mark.parametrize("name", ["a", "acme-maps", "Acme.Maps_2", "x" * 64])
def test_a_plugin_name_looks_like_one_of_a_package(name):
    assert plugin_name_fault(name) == ""


@pytest.mark.parametrize("name", ["", "-a", "a-", ".a", "a/b", "a b", "a\n", "é", "x" * 65])
def test_anything_else_is_no_plugin_name(name):
    assert plugin_name_fault(name)


def test_the_name_of_the_group_that_is_always_active_is_kept():
    assert plugin_name_fault("basic") == "is reserved for the group that is always active"
    assert plugin_name_fault("basics") == ""


def test_near_misses_come_likeliest_first_and_in_the_case_that_is_known():
    candidates = ["Forecast", "forecasts", "broadcast", "geocode", "forest"]
    assert near_misses("FORECAST", candidates)[0] == "Forecast"
    assert len(near_misses("forecast", candidates)) == 3
    assert near_misses("forecast", candidates, most=1) == ("Forecast",)
    assert near_misses("xyz", candidates) == ()


def test_near_misses_do_not_depend_on_the_order_of_what_is_known():
    assert near_misses("ab", ["AB", "ab"]) == near_misses("ab", ["ab", "AB"])


@pytest.mark.parametrize(
    ("groups", "names"),
    [
        (None, ()),
        ("", ()),
        ([], ()),
        ("maps", ("maps",)),
        (["maps", "geo"], ("maps", "geo")),
        (("geo", "maps", "geo", ""), ("geo", "maps")),
        (iter(["maps"]), ("maps",)),
    ],
)
def test_groups_are_named_by_one_text_or_several_each_once(groups, names):
    assert group_names(groups) == names


@pytest.mark.parametrize("groups", [7, 1.5, True, object(), [7], ["maps", None], b"maps"])
def test_what_is_no_text_names_no_group(groups):
    with pytest.raises(DefinitionError, match="must be a string"):
        group_names(groups)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("get_user_name", "Get user name."),
        ("getUserName", "Get user name."),
        ("HTTPServer-start", "Http server start."),
        ("_", ""),
        ("żółw", "Żółw."),
    ],
)
def test_a_name_is_written_as_a_sentence(name, sentence):
    assert sentence_of(name) == sentence
