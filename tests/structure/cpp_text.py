"""Just enough C++ reading for the structure tests: comments and literals blanked, includes, function extents."""

import re

LITERALS = re.compile(
    r"""
    //[^\n]* | /\*.*?\*/                                    # comments
    | R"(?P<tag>[^\s()\\]{0,16})\(.*?\)(?P=tag)"            # raw strings
    | "(?:\\.|[^"\\\n])*"                                   # strings
    | (?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+'                  # characters, not digit separators
    """,
    re.DOTALL | re.VERBOSE,
)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.MULTILINE)
PREPROCESSOR = re.compile(r"^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", re.MULTILINE)
CONTAINER = re.compile(r"\b(namespace|class|struct|union|enum|concept)\b")


def blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def code_only(text):
    """The text with comments, literals and preprocessor lines blanked; every character keeps its place."""
    return PREPROCESSOR.sub(blank, LITERALS.sub(blank, text))


def includes(text):
    """[(line, quoted, path)]"""
    return [
        (text.count("\n", 0, match.start()) + 1, match.group(1) == '"', match.group(2))
        for match in INCLUDE.finditer(text)
    ]


def is_function(header):
    """Whether the text before an opening brace heads a function (lambdas and methods included)."""
    if "(" not in header:
        return False
    before = header.split("(", 1)[0]
    if CONTAINER.search(re.sub(r"\btemplate\s*<[^()]*>", "", before)) and not re.search(
        r"\)\s*(const|noexcept)?\s*$", header
    ):
        return False
    return not re.search(r"=\s*$", header)


def functions(text):
    """[(first line, last line, header)] of outermost function bodies; what is inside a function counts to it."""
    code = code_only(text)
    found, stack, start = [], [], 0
    for position, char in enumerate(code):
        if char == "{":
            header = code[start:position]
            inside = any(kind == "function" for kind, _ in stack)
            kind = "function" if not inside and is_function(header) else "other"
            stack.append((kind, start + len(header) - len(header.lstrip())))
            start = position + 1
        elif char == "}":
            if stack:
                kind, begin = stack.pop()
                if kind == "function":
                    first = code.count("\n", 0, begin) + 1
                    last = code.count("\n", 0, position) + 1
                    found.append((first, last, " ".join(code[begin:position].split("{", 1)[0].split())))
            start = position + 1
        elif char == ";":
            start = position + 1
    return found
