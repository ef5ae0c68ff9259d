import pytest

from satchel.setup.source_addresses import read_address
from satchel.setup.source_fetch import FetchedSource


@pytest.mark.parametrize(
    ("files", "inner"),
    [
        (["pdf-1.0/SKILL.md", ".gitignore"], "pdf-1.0"),
        (["pdf/SKILL.md", "maps/SKILL.md"], ""),
        (["SKILL.md"], ""),
        (["SKILL.md", "scripts/run.py"], ""),
        ([], ""),
    ],
)
def test_the_content_of_an_archive_may_be_in_one_folder(tmp_path, files, inner):
    content = tmp_path / "content"
    content.mkdir()
    for file in files:
        (content / file).parent.mkdir(exist_ok=True)
        (content / file).touch()
    (tmp_path / "a.zip").touch()
    archive = read_address(str(tmp_path / "a.zip"))
    fetched = FetchedSource(address=archive, folder=str(content))
    assert fetched.content_folder == str(content / inner).rstrip("/")
    folder = FetchedSource(address=read_address(str(content)), folder=str(content))
    assert folder.content_folder == str(content)
