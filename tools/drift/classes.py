"""What a class of a source tree has, read from the text: nothing is imported or run."""

import ast
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

__all__ = ["Members", "members"]

Members = dict[str, tuple[str, ...] | None]
"""By name: a method's parameters without ``self``; None for anything that isn't a method."""

PROPERTIES = ("property", "cached_property")


def members(root: Path, owner: str, files: Sequence[str]) -> Members | None:
    """Return what a class has, what it inherits included.

    Args:
        root: folder that holds the package ``vllm``.
        owner: the class's name; empty for the names of the module itself.
        files: where it may be, below ``vllm``; the first that has it counts.

    Returns:
        None when none of ``files`` has it.
    """
    for file in files:
        tree = _parse(root / "vllm" / file)
        if tree is not None and not owner:
            return {node.name: _parameters(node, ()) for node in _functions(tree)}
        if tree is not None and (found := _class(tree, owner)) is not None:
            return _of_class(root, tree, found)
    return None


@cache
def _parse(file: Path) -> ast.Module | None:
    try:
        return ast.parse(file.read_bytes())
    except FileNotFoundError:
        return None


def _class(tree: ast.Module, name: str) -> ast.ClassDef | None:
    classes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    return next((node for node in classes if node.name == name), None)


def _functions(node: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child


def _of_class(root: Path, tree: ast.Module, node: ast.ClassDef) -> Members:
    found: Members = {}
    for base in reversed(node.bases):
        name = base.value if isinstance(base, ast.Subscript) else base  # Base[T]
        if isinstance(name, ast.Name):
            found |= _of_base(root, tree, name.id, node.name)
    for child in node.body:
        found |= dict.fromkeys(_assigned(child))
    for method in _functions(node):
        decorators = {_last_name(decorator) for decorator in method.decorator_list}
        found |= dict.fromkeys(_set_on_self(method))
        if decorators.isdisjoint(PROPERTIES):
            bound = () if "staticmethod" in decorators else ("self",)
            found[method.name] = _parameters(method, bound)
        else:
            found[method.name] = None
    return found


def _of_base(root: Path, tree: ast.Module, name: str, heir: str) -> Members:
    """Return what a base class has: of this module, or of the one it is imported from."""
    here = _class(tree, name)
    if here is not None and name != heir:
        return _of_class(root, tree, here)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("vllm."):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    path = (node.module or "").replace(".", "/").removeprefix("vllm/")
                    return members(root, alias.name, (f"{path}.py", f"{path}/__init__.py")) or {}
    return {}


def _assigned(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement of a class's body gives it."""
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield node.target.id
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name):
                yield target.id
                if target.id == "__slots__" and isinstance(node.value, ast.Tuple | ast.List):
                    for item in node.value.elts:
                        if isinstance(item, ast.Constant):
                            yield str(item.value)


def _set_on_self(method: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    for node in ast.walk(method):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and isinstance(node.value, ast.Name)
            and node.value.id == "self"
        ):
            yield node.attr


def _parameters(
    method: ast.FunctionDef | ast.AsyncFunctionDef, bound: tuple[str, ...]
) -> tuple[str, ...]:
    args = method.args
    names = [arg.arg for arg in (*args.posonlyargs, *args.args)][len(bound) :]
    return (*names, *(arg.arg for arg in args.kwonlyargs))


def _last_name(node: ast.expr) -> str:
    """Return ``cached_property`` of ``functools.cached_property``, and of a call of it."""
    if isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
