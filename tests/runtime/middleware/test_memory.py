from layer_stage import OK, a_call

from satchel.runtime.middleware.memory import AnswerCache


def remember(memory, *places):
    for place in places:
        run = memory.begin(place, a_call())
        memory.note(run, OK)
        memory.end(run)


def test_what_is_over_is_held_only_as_an_answer():
    memory = AnswerCache(10, 2, lambda: 0)
    remember(memory, 1, 2, 3)
    assert (memory._running, memory._joinable, list(memory._kept)) == (set(), {}, [2, 3])


def test_an_answer_that_is_renewed_is_the_youngest():
    memory = AnswerCache(10, 2, lambda: 0)
    remember(memory, 1, 2, 1, 3)
    assert list(memory._kept) == [1, 3]
