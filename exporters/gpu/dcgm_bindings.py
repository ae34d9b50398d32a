"""The host's pydcgm: where it lies, and how it is imported from there.

The bindings ship with DCGM, in a folder of their own, on no package index; only those of the
installed libdcgm know its structures. Their modules import one another by bare names.
"""

import importlib
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vramscope.exporters.errors import SourceUnavailableError

__all__ = ["FOLDERS", "VARIABLE", "Bindings", "load_bindings"]

VARIABLE = "VRAMSCOPE_DCGM_BINDINGS"

FOLDERS = (
    Path("/usr/share/datacenter-gpu-manager-4/bindings/python3"),
    Path("/usr/local/dcgm/bindings/python3"),
)
"""Where DCGM 4.x and 3.x install them."""

MODULES = ("pydcgm", "dcgm_agent", "dcgm_structs")


@dataclass(frozen=True, slots=True)
class Bindings:
    """The three modules of pydcgm that are used.

    Attributes:
        pydcgm: handles, groups and field groups.
        agent: ``dcgm_agent``, the library's functions.
        structs: ``dcgm_structs``, its structures and errors.
    """

    pydcgm: Any
    agent: Any
    structs: Any

    @property
    def error(self) -> type[Exception]:
        """What the bindings raise; its ``value`` is DCGM's return code."""
        kind: type[Exception] = self.structs.DCGMError
        return kind


def load_bindings(
    environment: Mapping[str, str] = os.environ, folders: Sequence[Path] = FOLDERS
) -> Bindings:
    """Import the bindings from the folder that ``$VRAMSCOPE_DCGM_BINDINGS`` names, or the host's.

    Raises:
        SourceUnavailableError: there are none, or they can't be imported.
    """
    if named := environment.get(VARIABLE):
        folder = Path(named)
        if not _has_bindings(folder):
            raise SourceUnavailableError(
                f"{VARIABLE}={named}: no readable pydcgm.py there: want the folder "
                "bindings/python3 of the installed DCGM"
            )
        return _import_from(folder)
    for folder in folders:
        if _has_bindings(folder):
            return _import_from(folder)
    looked = ", ".join(map(str, folders))
    raise SourceUnavailableError(
        f"no DCGM Python bindings in {looked}: install NVIDIA's package "
        f"datacenter-gpu-manager-4-core, or set {VARIABLE}"
    )


def _has_bindings(folder: Path) -> bool:
    # os.access, since pathlib raises where the parent may not be searched.
    return os.access(folder / "pydcgm.py", os.R_OK)


def _import_from(folder: Path) -> Bindings:
    before = set(sys.modules)
    writes_bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    sys.path.insert(0, str(folder))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NVIDIA's code, not ours to mend
            return Bindings(*(importlib.import_module(name) for name in MODULES))
    except Exception as error:  # whatever a foreign module does at import
        for name in set(sys.modules) - before:
            if _lies_in(folder, sys.modules[name]):
                del sys.modules[name]  # so that a later try starts afresh
        raise SourceUnavailableError(
            f"{folder}: the DCGM bindings can't be imported: {type(error).__name__}: {error}"
        ) from error
    finally:
        sys.path.remove(str(folder))
        sys.dont_write_bytecode = writes_bytecode


def _lies_in(folder: Path, module: object) -> bool:
    file = getattr(module, "__file__", None)
    return file is not None and Path(file).parent == folder
