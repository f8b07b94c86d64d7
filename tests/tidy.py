"""The project's own rules of style, each a function from sources to complaints.

A tree maps each file's path, relative to the checkout, to its text, so a rule is tried on a tiny
bad example as easily as on the project. A complaint is one line: place, then what is wrong.
"""

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path, PurePosixPath

from hatch_build import PACKAGES

Tree = Mapping[str, str]

# A function that is longer doesn't fit on a screen; a file that is longer has two subjects.
FUNCTION_LIMIT_LINES = 70
FILE_LIMIT_LINES = 500

# "About five" lines: shorter says nothing, longer isn't read.
LAYOUT_LINES = range(3, 10)

# Packages that call the methods of classes which derive from theirs.
FRAMEWORKS = frozenset(("pytest", "textual", "trio"))

SKIPPED_FOLDERS = frozenset(("results", "__pycache__", "dist", "node_modules"))
TEXT_SUFFIXES = frozenset((".py", ".toml", ".md", ".js", ".j2", ".css", ".txt", ".json"))

# What an actor may only reach through its context.
CLOCKS_AND_TASKS = frozenset(("trio", "time", "datetime", "threading"))
CHANCE = frozenset(("random", "secrets", "uuid"))
MACHINE = frozenset(("os", "pathlib", "socket", "sqlite3"))
BANNED_IN_PURE = CLOCKS_AND_TASKS | CHANCE | MACHINE
# Modules of actors/ that drive actors or talk to the world, and so are not pure.
HOSTS = (
    "commits", "durable", "host", "mailbox", "network", "raised", "serving", "simulator",
    "supervisor", "world", "graphs/isolate", "graphs/script",
)  # fmt: skip
NOT_PURE = ("actors/stores/", "actors/edges/", *(f"actors/{name}.py" for name in HOSTS))

# The brackets keep this line from complaining about itself.
UNFINISHED = re.compile(r"\b(TOD[O]|FIXM[E]|XX[X]|HAC[K])\b")
MODULE_NAME = re.compile(rf"(?:{'|'.join(PACKAGES)})(?:\.[A-Za-z_]\w*)+(?::\w+)?")
NAMED_FUNCTION = re.compile(r"\.?[\w.]*:([A-Za-z_]\w*)")
SUPPRESSION = re.compile(r"#\s*(noqa\b[:\s]*[A-Z0-9, ]*|type:\s*ignore(\[[\w, -]+\])?)(.*)")


def read_tree(root: Path) -> dict[str, str]:
    """The project's text files, without what is installed, generated or written by runs."""
    return {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(root.rglob("*"))
        if path.suffix in TEXT_SUFFIXES or path.name in {"Makefile", "run"}
        if path.is_file() and not is_skipped(path.relative_to(root).parts[:-1])
    }


def is_skipped(folders: tuple[str, ...]) -> bool:
    """Whether a path through these folders leads out of what people write."""
    hidden = any(name.startswith(".") and name != ".ci" for name in folders)
    return hidden or not SKIPPED_FOLDERS.isdisjoint(folders)


def is_users(path: str) -> bool:
    """Whether a file is code as users write it, a starter or an example, and no module of ours."""
    return not {"templates", "examples", "ablation"}.isdisjoint(PurePosixPath(path).parts)


def python(tree: Tree, *folders: str) -> dict[str, str]:
    """The Python files of a tree, less users' code; those in `folders` alone, if any are given."""
    return {
        path: source
        for path, source in tree.items()
        if path.endswith(".py") and not is_users(path)
        if not folders or path.split("/")[0] in folders
    }


@cache
def parse(source: str) -> ast.Module:
    """The syntax tree of a source."""
    return ast.parse(source)


def module_name(path: str) -> str:
    """The dotted name of the module in a file: actors/stores/__init__.py is actors.stores."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


# Size


def long_functions(tree: Tree) -> Iterator[str]:
    """Functions that don't fit on a screen."""
    for path, source in python(tree).items():
        for node in ast.walk(parse(source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno is not None
                lines = node.end_lineno - node.lineno + 1
                if lines >= FUNCTION_LIMIT_LINES:
                    yield f"{path}:{node.lineno}: {node.name} has {lines} lines"


def long_files(tree: Tree) -> Iterator[str]:
    """Files that have more than one subject."""
    for path, source in python(tree).items():
        lines = source.count("\n")
        if lines >= FILE_LIMIT_LINES:
            yield f"{path}: {lines} lines"


# What nobody uses

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign


def definitions(module: ast.Module) -> Iterator[tuple[str, Definition]]:
    """Names that a module defines: at its top, and the methods of its classes."""
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    yield target.id, node
        if isinstance(node, ast.ClassDef):
            for member in node.body:
                if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield member.name, member


def is_called_from_outside(name: str, node: Definition) -> bool:
    """Whether the language, a framework or a decorator uses a definition by itself."""
    if name.startswith(("__", "pytest_")):
        return True
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    plain = {"property", "cached_property", "staticmethod", "classmethod", "cache", "override"}
    return any(ast.unparse(decorator) not in plain for decorator in node.decorator_list)


def references(path: str, node: ast.AST) -> Counter[str]:
    """How often each name is used under a node.

    The facade's imports are uses, since users have them from there. A class may be named by a
    string (an annotation), a function by what follows the colon of a lazy import.
    """
    found: Counter[str] = Counter()
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Store):
            found[each.id] += 1
        elif isinstance(each, ast.Attribute):
            found[each.attr] += 1
        elif isinstance(each, ast.ImportFrom) and path == "pullcord.py":
            found.update(alias.name for alias in each.names)
        elif isinstance(each, ast.Constant) and isinstance(each.value, str):
            if each.value[:1].isupper() and each.value.isidentifier():
                found[each.value] += 1
            elif match := NAMED_FUNCTION.fullmatch(each.value):
                found[match[1]] += 1
    return found


def frameworks_users(module: ast.Module) -> Iterator[str]:
    """The classes of a module that derive from a framework's, which calls their methods."""
    imported = {
        alias.asname or alias.name: node.module or ""
        for node in module.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    for node in module.body:
        if isinstance(node, ast.ClassDef):
            roots = [re.split(r"[.\[]", ast.unparse(base))[0] for base in node.bases]
            homes = {imported.get(root, root).split(".")[0] for root in roots}
            if not FRAMEWORKS.isdisjoint(homes):
                yield node.name


def users_methods(modules: dict[str, str]) -> set[tuple[str, str]]:
    """(class, method) for the public methods of what the facade hands to users, and of its bases.

    A class that derives from one of a framework's (`pytest.Item`) is the framework's user: its
    methods count too.
    """
    wanted = [*references("pullcord.py", parse(modules.get("pullcord.py", "")))]
    wanted += [name for source in modules.values() for name in frameworks_users(parse(source))]
    classes = {
        node.name: node
        for source in modules.values()
        for node in parse(source).body
        if isinstance(node, ast.ClassDef)
    }
    methods: set[tuple[str, str]] = set()
    seen: set[str] = set()
    while wanted:
        name = wanted.pop()
        node = classes.get(name)
        if node is None or name in seen:
            continue
        seen.add(name)
        wanted += [base.id for base in node.bases if isinstance(base, ast.Name)]
        methods |= {
            (name, member.name)
            for member in node.body
            if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef)
            and not member.name.startswith("_")
        }
    return methods


def dead_definitions(tree: Tree) -> Iterator[str]:
    """Definitions of the packages and the benchmark that are used only inside themselves.

    Tests keep nothing alive: what only a test uses is dead.
    """
    modules = python(tree, *PACKAGES, "bench", "pullcord.py")
    used: Counter[str] = Counter()
    for path, source in modules.items():
        used += references(path, parse(source))
    public = {method for _, method in users_methods(modules)}
    for path, source in modules.items():
        for name, node in definitions(parse(source)):
            called = is_called_from_outside(name, node) or (
                name in public and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            )
            if not called and used[name] <= references(path, node)[name]:
                yield f"{path}:{node.lineno}: nothing uses {name}"


def imported_modules(tree: Tree) -> set[str]:
    """Every module that an import or a string in the tree may name."""
    named: set[str] = set()
    for path, source in python(tree).items():
        package = module_name(path).rpartition(".")[0]
        for node in ast.walk(parse(source)):
            if isinstance(node, ast.ImportFrom) and node.module:
                named.add(node.module)
                named.update(f"{node.module}.{alias.name}" for alias in node.names)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                written = node.value.partition(":")[0]
                named.add(package + written if written.startswith(".") else written)
    return named


def unused_files(tree: Tree) -> Iterator[str]:
    """Modules that no other file imports or names, and that no tool collects."""
    named = imported_modules(tree)
    collected = re.compile(r"(.*/)?(test_\w+|conftest|__init__|__main__)\.py")
    started = {"pullcord.py", "hatch_build.py", "bench/run.py"}
    for path in python(tree):
        if not collected.fullmatch(path) and path not in started and module_name(path) not in named:
            yield f"{path}: nothing imports it"


def missing_tests(tree: Tree) -> Iterator[str]:
    """Modules without a test file that mirrors them, or mirrors their sub-package as a whole."""
    for path in python(tree, *PACKAGES):
        place = PurePosixPath(path)
        if place.name in {"__init__.py", "__main__.py"}:
            continue
        mirrors = [PurePosixPath("tests") / place.with_name(f"test_{place.name}")]
        if len(place.parts) > 2:
            mirrors.append(
                PurePosixPath("tests") / place.parent.with_name(f"test_{place.parent.name}.py")
            )
        if not any(str(mirror) in tree for mirror in mirrors):
            yield f"{path}: no {mirrors[0]}"


# What a reader meets


def unfinished(tree: Tree) -> Iterator[str]:
    """Promises of work to come, in any text."""
    for path, source in tree.items():
        for number, line in enumerate(source.splitlines(), 1):
            if UNFINISHED.search(line):
                yield f"{path}:{number}: finish it or leave it out"


def possessive_patterns(tree: Tree) -> Iterator[str]:
    """Possessive quantifiers and atomic groups: before 3.11.4 some match what they should not."""
    for path, source in python(tree).items():
        for node in ast.walk(parse(source)):
            if not (isinstance(node, ast.Call) and ast.unparse(node.func) == "re.compile"):
                continue
            first = node.args[0] if node.args else None
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                bare = re.sub(r"\\.|\[[^\]]*\]", "x", first.value)
                if re.search(r"[*+?}]\+|\(\?>", bare):
                    yield f"{path}:{node.lineno}: possessive, which Python 3.11.2 gets wrong"


def packages_without_layout(tree: Tree) -> Iterator[str]:
    """Packages that don't open with about five lines on their layout, and folders that are none."""
    folders = {str(PurePosixPath(path).parent) for path in python(tree, *PACKAGES)}
    for folder in sorted(folders):
        source = tree.get(f"{folder}/__init__.py")
        if source is None:
            yield f"{folder}: no __init__.py"
        elif opening_lines(source) not in LAYOUT_LINES:
            yield f"{folder}/__init__.py: opens with {opening_lines(source)} lines on its layout"


def opening_lines(source: str) -> int:
    """How many lines of text a module opens with, as a docstring or a comment."""
    docstring = ast.get_docstring(parse(source))
    if docstring is not None:
        return sum(1 for line in docstring.splitlines() if line.strip())
    lines = source.splitlines()
    return next((n for n, line in enumerate(lines) if not line.startswith("#")), len(lines))


def silent_suppressions(tree: Tree) -> Iterator[str]:
    """Comments that switch a check off without saying why."""
    for path, source in python(tree).items():
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            match = SUPPRESSION.search(token.string) if token.type == tokenize.COMMENT else None
            if match and not re.search(r"\w{3,}", match[3]):
                yield f"{path}:{token.start[0]}: {match[1].strip()} gives no reason"


def silent_ignores(pyproject: str) -> Iterator[str]:
    """Rules that pyproject.toml switches off without a comment beside or above."""
    section, above = "", ""
    for number, line in enumerate(pyproject.splitlines(), 1):
        header = re.match(r"\[([\w.-]+)\]$|(ignore) = \[$|(\])$", line)
        if header:
            section = header[1] or header[2] or ""
        entry = re.match(r'\s*"[^"]+"', line) and section in {
            "ignore",
            "tool.ruff.lint.per-file-ignores",
        }
        if entry and "#" not in line and not above.startswith("#"):
            yield f"pyproject.toml:{number}: {line.strip()} gives no reason"
        # A comment above holds for the lines up to the next comment or blank line.
        if not entry:
            above = line.strip()


# What imports what


def imports(source: str) -> Iterator[tuple[ast.Import | ast.ImportFrom, str]]:
    """The imports of a module, also those inside functions, each with a module it names."""
    for node in ast.walk(parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node, alias.name
        elif isinstance(node, ast.ImportFrom):
            yield node, "." * node.level + (node.module or "")


def impure_imports(tree: Tree) -> Iterator[str]:
    """Imports that give a pure actor the world."""
    for path, source in python(tree, "actors").items():
        if not path.startswith(NOT_PURE):
            for node, module in imports(source):
                if module.split(".")[0] in BANNED_IN_PURE:
                    yield f"{path}:{node.lineno}: a pure actor imports {module}"


def other_import_forms(tree: Tree) -> Iterator[str]:
    """Imports of our packages that the wheel can't nest, and of the facade from below it."""
    for path, source in python(tree).items():
        for node, module in imports(source):
            first = module.split(".")[0]
            if first == "" or (isinstance(node, ast.Import) and first in PACKAGES):
                yield f"{path}:{node.lineno}: write from package.module import name"
            elif first == "pullcord" and path.split("/")[0] in PACKAGES:
                yield f"{path}:{node.lineno}: imports the facade, which stands above it"


def written_out_modules(tree: Tree) -> Iterator[str]:
    """Strings in code that name a module of ours; in the wheel it has another name.

    Write f"{__package__}.runner:run" instead.
    """
    modules = {module_name(path) for path in python(tree)}
    modules |= {name.rpartition(".")[0] for name in modules}
    for path, source in python(tree, *PACKAGES, "pullcord.py").items():
        for node in ast.walk(parse(source)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                named = MODULE_NAME.fullmatch(node.value)
                if named and (":" in node.value or node.value in modules):
                    yield f"{path}:{node.lineno}: computes no module name: {node.value!r}"
            elif isinstance(node, ast.Call) and is_loading(node):
                yield f"{path}:{node.lineno}: names a package: {ast.unparse(node)}"


def is_loading(call: ast.Call) -> bool:
    """Whether a call loads a module or its files by the literal name of one of our packages."""
    loads = ast.unparse(call.func).split(".")[-1] in {"import_module", "files", "find_spec"}
    first = call.args[0] if call.args else None
    return loads and isinstance(first, ast.Constant) and first.value in PACKAGES


def unplaced_modules(tree: Tree, layers: list[str]) -> Iterator[str]:
    """Modules that no line of the floors names, directly or through their package."""
    placed = {name.strip(" ()") for layer in layers for name in re.split(r"[|:]", layer)}
    for path in python(tree, *PACKAGES):
        parts = module_name(path).split(".")
        above = {".".join(parts[:length]) for length in range(1, len(parts) + 1)}
        # A package whose modules stand on several floors has none of its own.
        inner = f"{module_name(path)}."
        holds_others = path.endswith("/__init__.py") and (
            len(parts) == 1 or any(name.startswith(inner) for name in placed)
        )
        if not holds_others and placed.isdisjoint(above):
            yield f"{path}: the floors in pyproject.toml don't place it"
