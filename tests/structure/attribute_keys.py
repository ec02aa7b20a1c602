"""Which source files write and read which attribute keys, found by the calls that take a key."""

import re

SUBJECT = r"(?:[^,()\"]|\((?:[^()]|\([^()]*\))*\))*"  # an argument, with calls inside
READ = re.compile(
    rf"(?=\b(?:attr(?:Int|Float|Str|Ints)?|listedName|bytesAttr|overDims)\({SUBJECT},\s*\"([^\"]+)\")"
)
MARK = re.compile(rf"(?=\bmark\({SUBJECT},\s*\"([^\"]+)\")")  # a number, or its text over symbolic dimensions
WRITE = re.compile(rf"\bwithAttr\({SUBJECT},\s*\"([^\"]+)\"|\bAnnotate\{{{SUBJECT},\s*\"([^\"]+)\"")
DICT = re.compile(r"\bdict\(\{(\{.*?\})\}\)", re.S)
PAIR = re.compile(r"\{\s*\"([^\"]+)\"\s*,")
DECLARED = re.compile(r"\b(?:int|float|str|ints|floats|dtype)Attr\(\s*\"([^\"]+)\"|\{\"(\w+)\", AttrKind::")
ROW = re.compile(r"^\| `([^`]+)` \| ([^|]*) \| ([^|]*) \| ([^|]*) \| ([^|]*) \|$", re.M)


def operator_attributes(texts):
    """Names that operators declare, in the texts of src/ops."""
    return {a or b for text in texts for a, b in DECLARED.findall(text)}


def uses(text):
    """{("write" | "read", key)} of a source text."""
    found = {("read", key) for key in READ.findall(text)}
    found |= {("write", a or b) for a, b in WRITE.findall(text)}
    found |= {("write", key + end) for key in MARK.findall(text) for end in ["", "_text"]}
    found |= {("write", key) for body in DICT.findall(text) for key in PAIR.findall(body)}
    return found


def listed(page):
    """{key: (what it means, writers, readers)} of the table in docs/attributes.md."""

    def names(cell):
        return set(re.findall(r"`([^`]+)`", cell))

    return {
        key: (meaning.strip(), names(writers), names(readers))
        for key, _, meaning, writers, readers in ROW.findall(page)
    }


def row(key, on, meaning, writers, readers):
    def cell(names, otherwise):
        return ", ".join(f"`{name}`" for name in sorted(names)) or otherwise

    return f"| `{key}` | {on} | {meaning} | {cell(writers, 'texts, other tools')} | {cell(readers, 'people, other tools')} |"
