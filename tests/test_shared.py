"""What all sessions of one satchel share."""

from satchel.catalog import Catalog, CatalogStore
from satchel.groups import Activation
from satchel.prompt import SkillPrompt
from satchel.settings import Limits
from satchel.shared import Shared


def made() -> Shared:
    return Shared(CatalogStore(), Limits(), SkillPrompt())


def test_sessions_of_one_activation_share_a_view():
    shared = made()
    assert shared.view(Activation()) is not None
    assert shared.view(Activation())[1] is shared.view(Activation())[1]
    other = Activation(on=frozenset({"maps"}))
    assert shared.view(other)[1] is not shared.view(Activation())[1]


def test_a_view_and_its_catalog_are_of_one_generation_and_the_old_ones_go():
    shared = made()
    old = shared.view(Activation())
    new = Catalog(7)
    shared.publish(new)
    catalog, view = shared.view(Activation())
    assert shared.catalog is catalog is new
    assert view is not old[1]


def test_there_are_no_layers_at_first():
    assert made().layers == ()
