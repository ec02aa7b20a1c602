"""docs/attributes.md lists every attribute key of functions, blocks, loops and allocations with who uses it."""

import pathlib

import attribute_keys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SOURCE = ROOT / "src"


def found():
    """{key: {"write": files, "read": files}} of keys that no operator declares."""
    operators = attribute_keys.operator_attributes(path.read_text() for path in (SOURCE / "ops").iterdir())
    keys = {}
    for path in sorted(SOURCE.rglob("*")):
        if path.suffix not in {".cc", ".h"}:
            continue
        for role, key in attribute_keys.uses(path.read_text()):
            if key not in operators:
                roles = keys.setdefault(key, {"write": set(), "read": set()})
                roles[role].add(str(path.relative_to(SOURCE)))
    return keys


def faults(keys, table):
    out = [f"{key}: not in docs/attributes.md ({roles})" for key, roles in keys.items() if key not in table]
    for key, (meaning, writers, readers) in table.items():
        roles = keys.get(key)
        if not roles:
            out.append(f"{key}: no source file uses it")
        elif (roles["write"], roles["read"]) != (writers, readers) or not meaning:
            row = attribute_keys.row(key, "…", meaning, roles["write"], roles["read"])
            out.append(f"{key}: the row should be {row}")
    return out


def test_every_key_is_listed_with_its_users():
    table = attribute_keys.listed((ROOT / "docs" / "attributes.md").read_text())
    assert len(table) > 20
    wrong = faults(found(), table)
    assert not wrong, "\n" + "\n".join(wrong)


def test_an_unlisted_key_is_found():
    text = 'f = withAttr(copyOf(f, g(x)), "new_key", intImm(1));\nint n = attrInt(f->attrs,\n "other");'
    assert attribute_keys.uses(text) == {("write", "new_key"), ("read", "other")}
    assert attribute_keys.uses('dict({{"a", list(x)}, {"b", intImm(1)}})') == {("write", "a"), ("write", "b")}
    assert faults({"new_key": {"write": {"a.cc"}, "read": set()}}, {}) != []
    assert faults({"k": {"write": {"a.cc"}, "read": set()}}, {"k": ("m", {"b.cc"}, set())}) != []
    assert faults({}, {"gone": ("m", set(), set())}) != []
