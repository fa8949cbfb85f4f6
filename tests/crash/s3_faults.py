"""What a store of S3's protocol may do to a request, and to its answer.

Requests that change something are numbered, as the steps of the disk are in
:mod:`tests.crash.counting_storage`, and one of them meets a fault. A client repeats by itself what
has failed; such a repetition has no number of its own, and a fault says what becomes of it as well.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from tests.crash.counting_storage import kind_of

CHANGING: Final = ("PUT", "POST", "DELETE")
"""Methods of the requests that change something."""
TOKEN_HEADER: Final = "x-amz-meta-hudiput"
_CONDITIONS: Final = {"if-none-match": "if absent", "if-match": "if same"}
_NUMBER: Final = re.compile(r"\d+")
_ID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22,}|[0-9a-f]{32,}")


class Request(NamedTuple):
    """A request as it came.

    ``method``, ``target``: the first line: the target is the path with its query, not decoded.
    ``headers``: names, in lower case, and values. ``body``: all bytes; empty as long as they are
    not read.
    """

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes = b""

    @property
    def identity(self) -> tuple[str | None, ...]:
        """What a repetition has in common with what it repeats, and no other request has."""
        marks = (TOKEN_HEADER, "if-match", "if-none-match", "x-amz-content-sha256")
        return (self.method, self.target, *map(self.headers.get, marks))

    @property
    def name(self) -> str:
        """What is done to which kind of object, without numbers and ids."""
        place = urlsplit(self.target)
        kind = kind_of_object(unquote(place.path))
        parts = [word for word in ("uploads", "partNumber", "uploadId") if word in place.query]
        if self.method == "POST" and not parts:
            return "POST delete"  # many objects at once, which the body names
        conditions = [said for header, said in _CONDITIONS.items() if header in self.headers]
        return " ".join((self.method, kind, *parts[:1], *conditions))


def kind_of_object(path: str) -> str:
    """Return what kind of file a path of a table names; see
    :func:`~tests.crash.counting_storage.kind_of`."""
    if "/.hoodie/" in path:
        return kind_of(path)
    for folder in ("_delta_log", "metadata"):
        _, found, name = path.partition(f"/{folder}/")
        if found:
            return _NUMBER.sub("N", _ID.sub("I", f"{folder}/{name}"))
    return "data"


class Deed(NamedTuple):
    """What becomes of one request.

    ``is_sent``: whether the store gets it, now. ``status``: what is answered in place of the
    store's answer; ``None`` for that. ``cut``: where the connection breaks: ``before`` the request
    is read wholly, ``instead`` of the answer, or in the ``middle`` of it. ``travels``: whether the
    store gets it later.
    """

    is_sent: bool = True
    status: int | None = None
    cut: str | None = None
    travels: bool = False


class Way(NamedTuple):
    """One way in which a request goes wrong.

    ``first``: what becomes of the request. ``again``: what becomes of its repetitions. ``changes``,
    ``reads``: what becomes of all later requests that change something, and of those that do not;
    ``None`` where they pass. ``once``: whether that becomes of each of them once, and its
    repetitions pass.
    """

    first: Deed
    again: Deed = Deed()
    changes: Deed | None = None
    reads: Deed | None = None
    once: bool = False


_REFUSED: Final = Deed(False, 503)
_BROKEN: Final = Deed(False, cut="instead")
WAYS: Final[Mapping[str, Way]] = {
    # the store does nothing and says so; the client is asked to come again
    "refused": Way(_REFUSED),
    "refused again": Way(_REFUSED, _REFUSED),
    # it does everything, and says that it failed
    "lost": Way(Deed(status=500)),
    "lost again": Way(Deed(status=500), Deed(False, 500)),
    # it does everything, and says that somebody else was at it, or was first
    "conflict": Way(Deed(status=409)),
    "conflict again": Way(Deed(status=409), Deed(False, 409)),
    "first": Way(Deed(status=412)),
    # the connection breaks: before, amid the request, before the answer, amid the answer
    "cut": Way(_BROKEN),
    "cut again": Way(_BROKEN, _BROKEN),
    "half": Way(Deed(False, cut="before")),
    "unanswered": Way(Deed(cut="instead")),
    "unanswered again": Way(Deed(cut="instead"), _BROKEN),
    "torn": Way(Deed(cut="middle")),
    # it takes the request, and does what it says later
    "late": Way(Deed(False, cut="instead", travels=True)),
    "late again": Way(Deed(False, cut="instead", travels=True), _REFUSED),
    # from now on: nothing answers; nothing can be changed; everything is done, and nothing told
    "gone": Way(_REFUSED, _REFUSED, _REFUSED, _REFUSED),
    "unreachable": Way(_BROKEN, _BROKEN, _BROKEN, _BROKEN),
    "read only": Way(_REFUSED, _REFUSED, _REFUSED),
    "mute": Way(Deed(status=500), Deed(status=500), Deed(status=500)),
    # or everything has to be asked twice: what is read breaks off, what is changed is not told
    "shaky": Way(Deed(cut="middle"), reads=Deed(cut="middle"), once=True),
    "busy": Way(_REFUSED, Deed(), _REFUSED, _REFUSED, once=True),
}
"""Every way, by its name."""
LASTING: Final = frozenset(name for name, way in WAYS.items() if way.changes or way.reads)
"""Those that end only when they are told to."""


REPEATED: Final = ("refused", "lost", "cut", "half", "unanswered")
"""Those after which a client repeats the request by itself, and nobody need notice."""


class S3Fault(NamedTuple):
    """What goes wrong.

    ``at``: number of the request, from 1 on. ``how``: one of :data:`WAYS`. ``lands``: where it
    travels, how many changing requests later it arrives: 1 before the next one; 0 where that is
    told.
    """

    at: int
    how: str
    lands: int = 0


class Verdict(NamedTuple):
    """What is decided about a request: its deed, and what arrives before it."""

    deed: Deed
    arriving: tuple[Request, ...] = ()


class S3Faults:
    """Counts requests and lets one of them go wrong; may be asked by many threads.

    ``names``: names of the requests that changed something, in order, without repetitions.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self._fault: S3Fault | None = None
        self._faulty: tuple[str | None, ...] | None = None
        self._met: set[tuple[str | None, ...]] = set()
        self._travelling: list[tuple[int | None, Request]] = []
        self._lock = threading.Lock()

    def arm(self, fault: S3Fault | None) -> None:
        """Count from one on, with this going wrong; what travels goes on."""
        with self._lock:
            self.names, self._fault, self._faulty = [], fault, None
            self._met = set()

    def decide(self, request: Request) -> Verdict:
        """Say what becomes of a request, whose body need not be there yet."""
        with self._lock:
            way = None if self._fault is None else WAYS[self._fault.how]
            if request.method not in CHANGING:
                return Verdict(self._later(request, None if way is None else way.reads))
            if way is not None and request.identity == self._faulty:
                return Verdict(way.again)
            if request.identity in self._met:
                return Verdict(Deed())
            self.names.append(request.name)
            arriving = self._due()
            if way is None or self._fault is None:
                return Verdict(Deed(), arriving)
            if len(self.names) == self._fault.at:
                self._faulty = request.identity
                return Verdict(way.first, arriving)
            return Verdict(self._later(request, way.changes), arriving)

    def _later(self, request: Request, deed: Deed | None) -> Deed:
        """Return what becomes of a request that comes after the faulty one."""
        if self._fault is None or self._faulty is None or deed is None:
            return Deed()
        if WAYS[self._fault.how].once:
            if request.identity in self._met:
                return Deed()
            self._met.add(request.identity)
        return deed

    def travel(self, request: Request) -> None:
        """Take a request that is to arrive later."""
        with self._lock:
            lands = 0 if self._fault is None else self._fault.lands
            self._travelling.append((lands or None, request))

    def landing(self) -> tuple[Request, ...]:
        """Return what is still travelling, which arrives now."""
        with self._lock:
            found = tuple(request for _, request in self._travelling)
            self._travelling = []
            return found

    def _due(self) -> tuple[Request, ...]:
        """Return what arrives before the request that was counted just now."""
        left = [(None if at is None else at - 1, one) for at, one in self._travelling]
        self._travelling = [(at, one) for at, one in left if at != 0]
        return tuple(one for at, one in left if at == 0)
