"""The rules of two providers, written from their documentation and not from our code."""

STRICT_FORMATS = {"date-time", "time", "date", "duration", "email", "hostname"} | {
    *("ipv4", "ipv6", "uuid"),
}
STRICT_BY_TYPE = {
    "string": {"pattern", "format"},
    "number": {"multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"},
    "integer": {"multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"},
    "boolean": set(),
    "null": set(),
}


def against_strict(root):
    """Say what OpenAI would refuse in a schema with strict set."""
    faults = [] if root.get("type") == "object" else ["the root is no object"]
    for name, schema in root.get("$defs", {}).items():
        faults += _strict(schema, root, f"$defs.{name}")
    top = {key: value for key, value in root.items() if key != "$defs"}
    return faults + _strict(top, root, "root")


def _strict(schema, root, where):
    keys = schema.keys() - {"description", "title"}
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        is_known = name == "#" or name in root.get("$defs", {})
        return [] if is_known and schema.keys() == {"$ref"} else [f"{where}: {schema}"]
    if "anyOf" in schema:
        faults = [] if keys == {"anyOf"} and schema["anyOf"] else [f"{where}: {keys}"]
        for at, item in enumerate(schema["anyOf"]):
            faults += _strict(item, root, f"{where}|{at}")
        return faults
    if schema.get("type") == "object":
        return _strict_object(schema, keys, root, where)
    if schema.get("type") == "array":
        extra = keys - {"type", "items", "minItems", "maxItems"}
        return [f"{where}: {extra}"] * bool(extra) + _strict(schema["items"], root, f"{where}[]")
    return _strict_scalar(schema, keys, where)


def _strict_scalar(schema, keys, where):
    if schema.get("type") not in STRICT_BY_TYPE:
        return [f"{where}: type {schema.get('type')!r}"]
    extra = keys - {"type", "enum", "const"} - STRICT_BY_TYPE[schema["type"]]
    if schema.get("format", "date") not in STRICT_FORMATS:
        extra.add("format")
    if "(?" in schema.get("pattern", "").replace("(?:", ""):
        extra.add("pattern")
    return [f"{where}: {key}" for key in extra]


def _strict_object(schema, keys, root, where):
    extra = keys - {"type", "properties", "required", "additionalProperties"}
    faults = [f"{where}: {key}" for key in extra]
    if schema.get("additionalProperties") is not False:
        faults.append(f"{where}: is open")
    if schema.get("required") != list(schema.get("properties", "?")):
        faults.append(f"{where}: not all are required")
    for name, item in schema.get("properties", {}).items():
        faults += _strict(item, root, f"{where}.{name}")
    return faults


GEMINI_FIELDS = {"type", "format", "title", "description", "nullable", "enum", "maxItems"} | {
    *("minItems", "properties", "required", "minProperties", "maxProperties", "minLength"),
    *("maxLength", "pattern", "example", "anyOf", "propertyOrdering", "default", "items"),
    *("minimum", "maximum"),
}
GEMINI_TYPES = {"string", "number", "integer", "boolean", "array", "object"}
GEMINI_FORMATS = {None, "date-time", "enum", "float", "double", "int32", "int64"}


def against_gemini(schema, where="root"):
    """Say what Gemini, or Gemini on Vertex, would refuse in the schema of a declaration."""
    faults = [f"{where}: {key}" for key in schema.keys() - GEMINI_FIELDS]
    if "anyOf" in schema:
        if schema.keys() != {"anyOf"} or len(schema["anyOf"]) < 2:
            faults.append(f"{where}: anyOf is not alone")
        for at, item in enumerate(schema["anyOf"]):
            faults += against_gemini(item, f"{where}|{at}")
        return faults
    faults += _gemini_typed(schema, where)
    if schema.get("type") == "array":
        faults += against_gemini(schema["items"], f"{where}[]")
    for name, item in schema.get("properties", {}).items():
        faults += against_gemini(item, f"{where}.{name}")
    return faults


def _gemini_typed(schema, where):
    faults = []
    if schema.get("type") not in GEMINI_TYPES:
        faults.append(f"{where}: type {schema.get('type')!r}")
    if schema.get("format") not in GEMINI_FORMATS:
        faults.append(f"{where}: format {schema['format']!r}")
    if "enum" in schema and not (
        schema["type"] == "string" and all(isinstance(x, str) and x for x in schema["enum"])
    ):
        faults.append(f"{where}: an enum that is not of strings")
    if set(schema.get("required", [])) - set(schema.get("properties", {})):
        faults.append(f"{where}: requires what is not there")
    if schema.get("properties") == {}:
        faults.append(f"{where}: no properties")
    return faults
