from dataclasses import replace

from satchel.configuration.projects import Project
from satchel.sources.search_roots import Precedence, RootKind, SearchRoot


def root(folder, scope=Precedence.PROJECT):
    path = f"{folder}/skills"
    return SearchRoot(path=path, holds=RootKind.SKILLS, scope=scope, source=path, within=folder)


def test_the_projects_of_search_roots_follow_the_project_each_once(pass_inputs):
    roots = (root("/here"), root("/there"), root("/there"), root("/home", Precedence.USER))
    config = replace(pass_inputs().config, roots=roots)
    assert [project.folder for project in config.projects] == ["/here", "/there"]
    within = replace(config, project=Project("/there"))
    assert [project.folder for project in within.projects] == ["/there", "/here"]
