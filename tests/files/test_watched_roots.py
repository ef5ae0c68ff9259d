from satchel.files.watched_roots import RootAliases


def test_a_path_below_a_linked_root_is_hinted_by_all_its_names(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    real, link = str(tmp_path / "real"), str(tmp_path / "link")
    for reported in (real, link):
        found = RootAliases((real, link)).of(frozenset({reported + "/a/SKILL.md"}))
        assert found == {real + "/a/SKILL.md", link + "/a/SKILL.md"}
    assert RootAliases((real, link)).of(None) is None
    outside = frozenset({"/elsewhere/a"})
    assert RootAliases((real, link)).of(outside) == outside
