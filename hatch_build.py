"""Nest the four packages under pullcord/ when the standard wheel is built.

In the checkout the packages lie at the top (actors, transports, scenarios, logs), where readers,
editors and type checkers look. Those names are too common to be installed: another project's
`transports` would be overwritten, and a user's own `actors.py` would be shadowed. So the wheel
holds pullcord/actors and so on, pullcord.py becomes pullcord/__init__.py, and every
`from actors.x import y` becomes `from pullcord.actors.x import y`.

Only import statements are rewritten. Code that names a module in a string (a lazy command, a
resource, a worker's entry) computes the name from its own `__name__` or `__package__` and never
writes it out; tests/test_tidy.py holds that. An editable install is left alone: it puts the
checkout itself on the path.
"""

import ast
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.config import BuilderConfig
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FACADE = "pullcord"
PACKAGES = ("actors", "transports", "scenarios", "logs")
NOT_SHIPPED = ("__pycache__", "*.pyc", ".*", "results")
FROM_PACKAGE = re.compile(rb"from[ \t]+(?=(?:%s)\b)" % "|".join(PACKAGES).encode())


class NestingHook(BuildHookInterface[BuilderConfig]):
    """Fills the standard wheel with the nested tree; does nothing for an editable one."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the nested tree beside the build and have every file of it included."""
        if version != "standard":
            return
        # Kept on the hook, so that it is removed with it, also when the build fails.
        self.scratch = tempfile.TemporaryDirectory(prefix="pullcord-wheel-")
        nested = Path(self.scratch.name)
        nest(Path(self.root), nested)
        for path in sorted(nested.rglob("*")):
            if path.is_file():
                inside = path.relative_to(nested).as_posix()
                build_data["force_include"][str(path)] = f"{FACADE}/{inside}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the nested tree."""
        del build_data, artifact_path
        if version == "standard":
            self.scratch.cleanup()


def nest(root: Path, nested: Path) -> None:
    """Copy facade and packages from the checkout at `root` to `nested`, as they look installed."""
    for name in PACKAGES:
        shutil.copytree(root / name, nested / name, ignore=shutil.ignore_patterns(*NOT_SHIPPED))
    shutil.copy(root / f"{FACADE}.py", nested / "__init__.py")
    for path in nested.rglob("*.py"):
        path.write_bytes(rewrite(path.read_bytes(), str(path.relative_to(nested))))
    (nested / "py.typed").touch()


def rewrite(source: bytes, name: str) -> bytes:
    """The source of the module called `name`, with its imports of the four packages nested.

    Raises SyntaxError for `import actors.x`, which would bind a name that the wheel doesn't have.
    """
    lines = source.splitlines(keepends=True)
    for node in ast.walk(ast.parse(source, name)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] in PACKAGES:
                    message = f'write "from {alias.name} import ...": no other form can be nested'
                    raise SyntaxError(message, (name, node.lineno, node.col_offset + 1, None))
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            line = lines[node.lineno - 1]
            match = FROM_PACKAGE.match(line, node.col_offset)
            if match:
                nested = line[: match.end()] + FACADE.encode() + b"." + line[match.end() :]
                lines[node.lineno - 1] = nested
    return b"".join(lines)
