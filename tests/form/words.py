"""words.py TREE: the sentences of TREE that a user meets and that are hard to read, one a line.

Read are: string literals of src/ and include/ (help, notes, errors, findings, tables of .def), the texts of
the guide's page (src/guide/ui), what tools/start and tools/setup print, and the prose of README.md,
CONTRIBUTING.md, docs/*.md, docs/decisions/*.md and the READMEs of folders; and the comments of the folders in
COMMENTS. Commands to copy, SQL, JSON and markup are no prose, and what make docs generates is lists. docs/notebook/,
where experiments are noted as they were made, is not read.

A sentence has at most 25 words, has no "what", "who" or "of" as its subject, and none of the phrases of
BANNED, which bend plain English."""

import glob
import os
import re
import sys

WORDS = 25
TITLE = 4  # words of a heading, which may begin with any word: "Who is fastest"
TITLES = ("What this machine can do with neural networks",)
BANNED = (
    r"so many", r"(?:said|says|say|saying|told) so", r"of what", r"of whom", r"what is no", r"nobody", r"whoever",
    r"that of", r"whereof", r"thereof", r"(?:is|are|be) (?:not )?said", r"said of", r"says of", r"so it is",
    r"so they are", r"worked out of", r"nothing is concluded", r"as it were", r"be it",
)
BAD = re.compile(r"\b(?:" + "|".join(BANNED) + r")\b", re.I)
SUBJECT = re.compile(r"(?:of|what|who|whom|whose)\b(?!')", re.I)
COMMAND = re.compile(r"\s*(?:\$ )?(?:prony|build/prony|ssh|make|cd) ")
CODE = re.compile(r"\s*(?:SELECT|INSERT|CREATE|UPDATE|DELETE|PRAGMA|WITH|FROM|WHERE|DROP|BEGIN|AND|LEFT|ORDER)\b"
                  r"|.*(?:[{}]|\bSELECT\b|</|/>|;\s*$|\w=\w+ \w+=)", re.S)


def sentences(text):
    """Its sentences: white space after a stop, an empty line or an item of a list ends one."""
    for piece in re.split(r"(?<=[.?!…])[)\"'”’`*]*\s+|\n\s*\n|\n(?=\s*[-*] )", text):
        piece = " ".join(piece.split())
        if piece:
            yield piece


def faults(text):
    """(rule, sentence) for each fault of a text."""
    text = "\n".join(line for line in text.split("\n") if not COMMAND.match(line))
    for sentence in sentences(text):
        words = [word for word in sentence.split() if re.search(r"\w", word)]
        if sum(1 for word in words if re.search(r"[A-Za-z]", word)) < 3:
            continue
        if len(words) > WORDS:
            yield f"{len(words)} words", sentence
        if (SUBJECT.match(sentence) and len(words) > TITLE and not text.startswith(" ") and sentence not in TITLES
                and not sentence.rstrip(")\"'").endswith("?")):
            yield "subject", sentence
        for found in BAD.finditer(sentence):
            yield f'"{found.group(0)}"', sentence


def plain(text):
    """A literal as it is printed: escapes undone, a format is a word."""
    text = text.replace("\\n", "\n").replace("\\t", " ").replace('\\"', '"').replace("\\\\", "\\")
    text = re.sub(r"%[-+#0]*[\d*]*(?:\.[\d*]+)?(?:hh|h|ll|l|z|j|t)?[diouxXeEfgGcsp]", "N", text)
    return text.replace("%%", "%")


TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<char>'(?:\\.|[^'\\\n])+')|(?P<text>"(?:\\.|[^"\\\n])*")|"""
    r"""(?P<space>[\s\\]+)|(?P<macro>\b(?:PRI\w+|[A-Z_]{3,})\b)|(?P<other>.)""", re.S)


def c_texts(source):
    """Literals of C, (line, text): neighbours are one, a macro between two is a word."""
    held, line, at, macro = None, 0, 1, False
    for match in TOKEN.finditer(source + ";"):
        kind, found = match.lastgroup, match.group(0)
        if kind == "text":
            line = line if held is not None else at
            held = (held or "") + (" N " if macro else "") + found[1:-1]
            macro = False
        elif kind == "macro" and held is not None:
            macro = True
        elif kind not in ("space", "comment"):
            if held is not None and not CODE.match(plain(held)):
                yield line, plain(held)
            held, macro = None, False
        at += found.count("\n")


def page_texts(source):
    """Literals of TypeScript, (line, text): what is put into one is a word."""
    pattern = re.compile(r"//[^\n]*|/\*.*?\*/|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"|`(?:\\.|\$\{[^{}]*\}|[^`\\])*`",
                         re.S)
    for match in pattern.finditer(source):
        text = plain(re.sub(r"\$\{[^{}]*\}", "N", match.group(0)[1:-1]))
        if match.group(0)[0] != "/" and not CODE.match(text):
            yield source.count("\n", 0, match.start()) + 1, text


def shell_texts(source):
    """Quoted texts of a shell script, (line, text)."""
    for number, line in enumerate(source.split("\n"), 1):
        if line.lstrip().startswith("#"):
            continue
        for match in re.finditer(r"'([^']*)'|\"((?:\\.|[^\"\\])*)\"", line):
            text = match.group(1) if match.group(1) is not None else match.group(2)
            text = plain(re.sub(r"\$\([^()]*\)|\$\{[^}]*\}|\$\w+", "N", text))
            if re.search(r"[A-Za-z]{2,} [a-z]{2,} [a-z]", text) and not CODE.match(text):
                yield number, text


def bare(text):
    """Markdown without its marks: a link is its text, code a word."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"\*\*|__", "", re.sub(r"``[^`]+``|`[^`]+`", "code", text))


def prose_texts(source):
    """Paragraphs, items and cells of Markdown, (line, text); not what make docs generates."""
    code, made, start, held = False, False, 0, []
    for number, line in enumerate(source.split("\n") + [""], 1):
        fence, item = line.startswith("```"), re.match(r"\s*(?:[-*]|\d+\.) ", line)
        made = made and line != "<!-- end -->" or bool(re.match(r"<!-- (?!end)", line))
        apart = fence or code or made or not line.strip() or line[0] in "|#<" or line.startswith("    ") and not held
        if (apart or item) and held:
            yield start, bare(" ".join(held))
            held = []
        if fence:
            code = not code
        elif not code and not made and line.startswith("|"):
            for cell in re.split(r"(?<!\\)\|", line.strip("|")):
                yield number, bare(cell.strip())
        elif not apart:
            start = start if held else number
            held.append(re.sub(r"^\s*(?:[-*]|\d+\.) ", "", line.strip()))


def comment_texts(source):
    """Paragraphs of the comments of C, (line, text); indented lines are code or tables, and are not read."""
    for match in re.finditer(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/', source, re.S):
        if match.group(0)[0] != "/":
            continue
        held, start, first = [], 0, source.count("\n", 0, match.start()) + 1
        body = re.sub(r"^/[/*]+!?<?|\*+/$", "", match.group(0))
        for number, line in enumerate(body.split("\n") + [""], first):
            line = re.sub(r"^\s*\* ?", "", line) if number > first else line.strip()
            row = re.match(r" {2,}\S", line)
            if (row or not line.strip()) and held:
                yield start, " ".join(held)
                held = []
            if line.strip() and not row:
                start = start if held else number
                held.append(line.strip())


# Folders whose comments are plain; a list that grows.
COMMENTS = ("include/*", "src/base/**/*.[ch]", "src/base/**/*.def")

READ = (
    (c_texts, ("src/**/*.c", "src/**/*.h", "src/**/*.cu", "src/**/*.cuh", "src/**/*.def", "include/*")),
    (page_texts, ("src/guide/ui/*.ts", "src/guide/ui/charts/*.ts", "src/guide/ui/small/*.ts", "src/guide/ui/views/*.ts")),
    (comment_texts, COMMENTS),
    (shell_texts, ("tools/start", "tools/setup", "tools/progress")),
    (prose_texts, ("README.md", "CONTRIBUTING.md", "docs/*.md", "docs/decisions/*.md", "src/**/README.md", "tests/README.md")),
)


def main():
    tree = sys.argv[1]
    for reader, patterns in READ:
        for pattern in patterns:
            for path in sorted(glob.glob(os.path.join(tree, pattern), recursive=True)):
                if "node_modules" in path:
                    continue
                with open(path, encoding="utf-8") as file:
                    source = file.read()
                for line, text in reader(source):
                    for rule, sentence in faults(text):
                        print(f"{os.path.relpath(path, tree)}:{line}: {rule}: {sentence}")


main()
