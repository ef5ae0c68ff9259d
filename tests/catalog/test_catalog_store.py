from satchel.catalog import Catalog, CatalogStore


def test_a_store_begins_with_the_empty_catalog():
    assert CatalogStore().current == Catalog()


def test_readers_see_a_generation_once_it_is_published(make):
    store = CatalogStore()
    before, published = store.current, make.catalog([make.skill("a")])
    store.publish(published)
    assert store.current is published
    assert before == Catalog()
