from satchel.tools import Tool


class Search(Tool):
    name = "search"
    description = "Find things."

    def __init__(self):
        self.parameters = {"type": "object", "properties": {"query": {"type": "string"}}}

    async def execute(self, /, **arguments):
        return arguments


def test_a_tool_describes_itself_in_the_common_function_shape():
    assert Search().to_schema() == {
        "type": "function",
        "function": {
            "name": "search",
            "description": "Find things.",
            "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
        },
    }


def test_changing_a_schema_that_was_handed_out_does_not_change_the_tool():
    search = Search()
    search.to_schema()["function"]["parameters"]["properties"].clear()
    assert search.parameters["properties"] == {"query": {"type": "string"}}


def test_a_tool_belongs_to_no_group_and_has_no_timeout_unless_it_says_so():
    assert (Search().group, Search().timeout) == (None, None)


def test_a_tool_is_shown_by_its_kind_and_name():
    assert repr(Search()) == "<Search search>"
