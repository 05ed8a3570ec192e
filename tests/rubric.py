"""The mechanical points of the rubric for generated text: each takes a file and finds what is wrong, with line and reason."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator

# Names that end in a number which means something: the axis of a block's side, stride or offset, the bytes of a copy.
NUMBERED = re.compile(r"\w+_(?:shape|stride|offset)_[0-4]|cp_async_(?:4|8|16)")
TAG = re.compile(r"^\s*// L(\d+): (.*)$")
LARGEST = {str((1 << bits - sign) - 1) for bits in (8, 16, 32, 64) for sign in (0, 1)}  # of integers: said by itself
WIDE_ENOUGH = {"4": ("int", "unsigned", "float"), "8": ("long long", "double")}  # elements that a copy's bytes align to


class Generated:
    """A generated file's lines and the source that it came from."""

    def __init__(self, text: str, source: str, kernel: str) -> None:
        """`kernel` is the name of its function in the source."""
        self.lines, self.source = text.splitlines(), source
        functions = [n for n in ast.parse(self.source).body if isinstance(n, ast.FunctionDef)]
        self.functions = {function.name: function for function in functions}
        self.kernel = self.functions[kernel]

    def tags(self) -> list[tuple[int, str]]:
        """(source line, quoted text) with continuation lines put together again."""
        found: list[tuple[int, str]] = []
        for number, line in enumerate(self.lines):
            if match := TAG.match(line):
                text = match[2]
                for following in self.lines[number + 1 :]:
                    if not re.match(r"^\s*//     (?:    )?\S", following):
                        break
                    remark = re.match(r"^\s*//         \(", following)
                    text += ("    " if remark else " ") + following.strip()[2:].strip()
                found.append((int(match[1]), text))
        return found


def code(line: str) -> str:
    """A line without its comment and without the contents of strings."""
    return re.sub(r"//.*", "", re.sub(r'"[^"]*"', '""', line))


def statements(function: ast.FunctionDef) -> set[int]:
    """Lines on which statements of a function stand, its docstring left out."""
    nodes = [n for n in ast.walk(function) if isinstance(n, ast.stmt) and n is not function]
    return {n.lineno for n in nodes if not (isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant))}


def lines_left_out(tag: str) -> Iterator[int]:
    """The lines that a remark says to be dead in this specialisation: "(…: without L46-L48)"."""
    if match := re.search(r"    \(.*: without L(\d+)(?:-L(\d+))?\)$", tag):
        yield from range(int(match[1]), int(match[2] or match[1]) + 1)


def every_statement_is_quoted(file: Generated) -> Iterator[str]:
    source, tags = file.source.splitlines(), file.tags()
    for number, text in tags:
        if text.split("    (")[0].strip() != source[number - 1].strip():
            yield f"L{number} is not the source line: {text}"
    counts = Counter(number for number, _ in tags)
    left_out = {n for _, text in tags for n in lines_left_out(text)}
    for number in statements(file.kernel) - counts.keys() - left_out:
        yield f"L{number} is missing"
    own = range(file.kernel.lineno, (file.kernel.end_lineno or 0) + 1)  # a function may be inlined twice
    for number, text in tags:
        if counts[number] > 1 and number in own and "    (" not in text:
            yield f"L{number} is quoted {counts[number]} times without a note"


def user_comments_are_kept(file: Generated) -> Iterator[str]:
    text = " ".join(re.sub(r"\n\s*// ", " ", "\n".join(file.lines)).split())  # long ones go on in the next line
    lines = statements(file.kernel)
    left_out = {number for _, tag in file.tags() for number in lines_left_out(tag)}
    for token in tokenize.generate_tokens(io.StringIO(file.source).readline):
        inside = file.kernel.lineno <= token.start[0] <= max(lines)
        if token.type != tokenize.COMMENT or not inside or token.string.startswith(("# fmt:", "# noqa")):
            continue
        if " ".join(token.string.lstrip("# ").split()) in text:
            continue
        if left_out.isdisjoint((token.start[0], min((line for line in lines if line > token.start[0]), default=0))):
            yield f"lost: {token.string}"
    docstring = (ast.get_docstring(file.kernel) or "").split("\n")[0]
    if docstring not in text:
        yield f"lost: {docstring}"


def no_serial_names(file: Generated) -> Iterator[str]:
    own = set(re.findall(r"\w+", file.source))
    for number, line in enumerate(file.lines, 1):
        for name in re.findall(r"\b(?:[A-Za-z]\w*_\d+|(?:val|alu|tmp|var|cast|v)\d+|_{2,}\d+)\b", code(line)):
            if name not in own and not NUMBERED.fullmatch(name):
                yield f"{number}: {name}"


def the_header_is_complete(file: Generated) -> Iterator[str]:
    head = "\n".join(line for line in file.lines[:40] if line.startswith("//"))
    for field in ("generated by tilewright", "target ", "arguments ", "constexpr ", "launch ", "block (",
                  "dynamic shared memory", "tiles "):  # fmt: skip
        if field not in head:
            yield f"no {field!r}"


def no_magic_numbers(file: Generated) -> Iterator[str]:
    for number, line in enumerate(file.lines, 1):
        if re.search(r"constexpr|static_assert|alignas|__align__|#include|asm\(|__device__", line):
            continue
        plain = re.sub(r"\w<-?\d+>\(", "(", code(line))  # of a helper's one number, its comment tells
        for literal in re.findall(r"(?<![\w.])(\d+)(?![\w.])", plain):
            if int(literal) > 32 and literal not in file.source and literal not in LARGEST:
                yield f"{number}: {literal}"


def no_repetition(file: Generated) -> Iterator[str]:
    lines = [code(line).strip() for line in file.lines]
    lines = [line for line in lines if line and not re.fullmatch(r"[{}();]+|#pragma unroll|\"\"", line)]
    loops = [line for line in lines if line.startswith(("for (", "if ("))]
    run = 1
    own = set(re.findall(r"\w+", file.source))  # the user's names differ in what they differ in
    shapes = [re.sub(r"\w+", lambda m: m[0] if m[0] in own else re.sub(r"\d+", "#", m[0]), line) for line in lines]
    for before, line in zip(shapes, shapes[1:], strict=False):
        run = run + 1 if line == before and line not in loops else 1
        if run == 5:
            yield f"a run of lines that differ in digits only: {line}"


def helpers_and_constants_are_used(file: Generated) -> Iterator[str]:
    text = "\n".join(code(line) for line in file.lines)
    for number, line in enumerate(file.lines):
        if match := re.match(r"__device__ __forceinline__ .*?(\w+)\(", line):
            above = file.lines[number - 1]
            above = file.lines[number - 2] if above.startswith("template") else above
            if len(re.findall(rf"\b{match[1]}\b", text)) < 2:
                yield f"{number + 1}: {match[1]} is never called"
            if not above.startswith("//") and match[1].removesuffix(f"_of_{file.kernel.name}") not in file.functions:
                yield f"{number + 1}: {match[1]} has no comment"
        if (match := re.match(r"constexpr \w+ (\w+) =", line)) and len(re.findall(rf"\b{match[1]}\b", text)) < 2:
            yield f"{number + 1}: {match[1]} is never used"


def comments_name_what_there_is(file: Generated) -> Iterator[str]:
    text = "\n".join(code(line) for line in file.lines)
    for number, line in enumerate(file.lines, 1):
        comment = "" if TAG.match(line) else line.partition("//")[2]
        for name in re.findall(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b", comment):
            if name not in file.source and not re.search(rf"\b{name}\b", text):
                yield f"{number}: {name} is nowhere in the file"


def the_header_names_what_there_is(file: Generated) -> Iterator[str]:
    end = file.lines.index("")
    said = " ".join(line.strip("/ ") for line in file.lines[:end]).partition(" tiles ")[2]
    text = "\n".join(code(line) for line in file.lines[end:])
    for names in re.findall(r"([A-Za-z_]\w*(?:, [A-Za-z_]\w*)*) \[", said):
        for name in names.split(", "):
            if not re.search(rf"\b{name}\b", text):
                yield f"the header describes {name}, which is nowhere in the file"


def quoted_at(file: Generated, number: int) -> str:
    """What was quoted last above a line, as far in as the line is: of the user's own loop, its head."""
    margin = indent(file.lines[number - 1])
    quotes = (TAG.match(line) for line in reversed(file.lines[: number - 1]) if indent(line) == margin)
    return next((quote[2] for quote in quotes if quote), "")


def indent(line: str) -> int:
    """The columns in front of a line."""
    return len(line) - len(line.lstrip(" "))


def casts_twice(line: str) -> bool:
    """Whether what a cast gives is all that another one to the same type takes."""
    for twice in re.finditer(r"static_cast<([\w ]+)>\(static_cast<\1>\(", line):
        depth = 1
        for place, character in enumerate(line[twice.end() :], twice.end()):
            depth += (character == "(") - (character == ")")
            if depth == 0:
                if line[place + 1 : place + 2] in (")", ""):  # what follows may stand in the next line
                    return True
                break
        else:
            return True
    return False


# What sets constants apart that are the same but for their number: `QUAD_VEC` and `OCT_VEC`, `ZEROS` and `ZEROS_SECOND`.
COUNTED = re.compile(r"^(PAIR|QUAD|OCT)_|_(SECOND|THIRD|FOURTH|FIFTH)$")


def nothing_is_said_twice_or_in_vain(file: Generated) -> Iterator[str]:
    for number, line in enumerate(file.lines, 1):
        loop = re.search(r"for \(int (\w+) = (\d+); \1 < (\d+); \+\+\1\)", code(line))
        if loop and int(loop[3]) - int(loop[2]) <= 1 and not quoted_at(file, number).startswith("for "):
            yield f"{number}: a loop of one iteration"
        if re.search(r"[^=]\+ 0\b(?!\.)|\* 1\b(?!\.)|/ 1\b|% 1\b", code(line)) or casts_twice(code(line)):
            yield f"{number}: {line.strip()}"
        if re.search(r"\*\(\w+ \+ \w+\)", code(line)):
            yield f"{number}: a subscript would do: {line.strip()}"
        if re.fullmatch(r"\s*(\w+(?:\[\w+\])*) = \1;", code(line).rstrip()):
            yield f"{number}: assigned to itself: {line.strip()}"
    for number, (line, following) in enumerate(zip(file.lines, file.lines[1:], strict=False), 1):
        if re.fullmatch(r" *if \(.*\) \{", line) and re.fullmatch(r" *if \(.*\) [^{]*;", following):
            closing = file.lines[number + 1].strip() == "}"
            if closing and not file.lines[number].strip().startswith("//"):
                yield f"{number}: one condition would do"
    constants = (re.match(r"constexpr \w+ (\w+) = [^;]*;\s+// (.*\D.*)$", line) for line in file.lines)
    explained = [match.groups() for match in constants if match]
    for comment, count in Counter(said for _, said in explained).items():
        names = [name for name, said in explained if said == comment]
        if count > 1 and len({COUNTED.sub("", name) for name in names}) > 1:
            yield f"{' and '.join(names)}: one comment, {comment!r}"


def the_layout_is_tidy(file: Generated) -> Iterator[str]:
    for number, line in enumerate(file.lines, 1):
        if len(line) > 110 or line != line.rstrip() or not line.isascii() or "\t" in line:
            yield f"{number}: {len(line)} columns, trailing space, tab or non-ASCII"


def index_arithmetic_is_flat(file: Generated) -> Iterator[str]:
    for number, line in enumerate(file.lines, 1):
        depth = deepest = 0
        for character in code(line):
            depth += (character == "(") - (character == ")")
            deepest = max(deepest, depth)
        if deepest > 4:
            yield f"{number}: {deepest} nested parentheses"
        if "threadIdx" in code(line) and not re.match(r"\s*const int \w+ = threadIdx", line):
            yield f"{number}: threadIdx outside a line that names a coordinate"


def synchronisation_is_explained(file: Generated) -> Iterator[str]:
    for number, line in enumerate(file.lines, 1):
        above = file.lines[number - 2].strip()
        explained = "//" in line or (above.startswith("// ") and not TAG.match(above))
        if "__syncthreads" in code(line) and not explained:
            yield f"{number}: {line.strip()}"


def vectors_rely_on_a_stated_alignment(file: Generated) -> Iterator[str]:
    """A compiler aligns an array in shared memory to its elements, unless told otherwise."""
    plain = [line for line in file.lines if re.match(r" +__shared__ (?!__align__)", line)]
    types = {name: line.split("__shared__ ")[1] for line in plain for name in re.findall(r"(\w+)\[", code(line))}
    for number, line in enumerate(file.lines, 1):
        for name, declared in types.items():
            found = re.search(
                rf"(?:_vec\w*|cp_async_(\d+)|ldmatrix\w*|stmatrix\w*)(?:<[^(]*>)?\(.*\b{name}\b", code(line)
            )
            if found and not declared.startswith(WIDE_ENOUGH.get(found[1], ("wider",))):
                yield f"{number}: {line.strip()}"


def no_loop_hides_another(file: Generated) -> Iterator[str]:
    """A loop within a loop counts by another name: what is written inside may mean either."""
    around: list[tuple[int, str]] = []
    for number, line in enumerate(file.lines, 1):
        indent = len(line) - len(line.lstrip())
        if code(line).strip() and not line.lstrip().startswith("#"):
            while around and around[-1][0] >= indent:
                around.pop()
        for name in re.findall(r"\bfor \([\w ]+ (\w+) = ", code(line)):
            if name in (other for _, other in around):
                yield f"{number}: {name} is a loop's around it too"
            around.append((indent, name))


def casts_are_visible(file: Generated) -> Iterator[str]:
    for number, line in enumerate(file.lines, 1):
        if re.search(r"\((?:int|float|half|unsigned|char|void)\s*\*?\)\s*[\w(&]", code(line)):
            yield f"{number}: C cast"
        if line.count("reinterpret_cast") > 1:
            yield f"{number}: {line.count('reinterpret_cast')} reinterpret_casts"


def the_size_is_in_proportion(file: Generated) -> Iterator[str]:
    start = next(i for i, line in enumerate(file.lines) if line.startswith('extern "C"'))
    body = [line for line in file.lines[start:] if code(line).strip()]
    # A line such as tl.store(p, tl.sum(x)) holds two operations; each may take its lines.
    reductions = re.findall(r"tl\.store\(.*tl\.(?:sum|max|min)\(|tl\.load\(.*\)\.to\(", ast.unparse(file.kernel))
    ratio = len(body) / (len(statements(file.kernel)) + len(reductions))
    if ratio > 6 or len(file.lines) > 350:
        yield f"{ratio:.1f} code lines a statement, {len(file.lines)} lines"


POINTS: list[Callable[[Generated], Iterator[str]]] = [
    every_statement_is_quoted, user_comments_are_kept, no_serial_names, the_header_is_complete, no_magic_numbers,
    no_repetition, helpers_and_constants_are_used, comments_name_what_there_is, the_header_names_what_there_is,
    nothing_is_said_twice_or_in_vain,
    the_layout_is_tidy, index_arithmetic_is_flat, synchronisation_is_explained, casts_are_visible,
    vectors_rely_on_a_stated_alignment, no_loop_hides_another,
    the_size_is_in_proportion,
]  # fmt: skip
