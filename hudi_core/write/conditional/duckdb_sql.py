"""Expressions in Spark's SQL as DuckDB computes them to the same values.

What is not known to have Spark's value is refused by name. Where the types of operands decide,
macros of DuckDB look at them.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from hudi_core.errors import SchemaError

Tree: TypeAlias = Any
"""An expression of sqlglot's."""
_CLASSES: Final = """
Initcap Abs Add And Array ArraySize Between BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Boolean Case
Coalesce Column Contains CurrentDate CurrentTimestamp Dot EndsWith EQ Exists GT GTE Greatest If
In Is IsNan LT LTE Least Length Lower MD5 Mul NEQ Neg Not NullSafeEQ NullSafeNEQ Nullif Nvl2 Or
Paren PropertyEQ Rand Replace SHA Sqrt StartsWith StrPosition Struct Sub Translate Trim Upper
Uuid Cast TryCast Div IntDiv Mod Like ILike RegexpLike Concat DPipe ConcatWs Substring Left
Right Round Floor Ceil Ln Year Month Day DayOfMonth Quarter DayOfYear WeekOfYear Hour Minute
Second DayOfWeek TsOrDsAdd TsOrDsToDate DateDiff AddMonths LastDay Interval Bracket Escape
Anonymous Count Sum Min Max Avg RowNumber Rank DenseRank Lag Lead Negative Map VarMap ToMap Sign
Pad Repeat Pow Exp SHA2 MapKeys MapValues TimeToStr TimeStrToTime Extract TimestampTrunc
"""
_SAME: Final = frozenset(_CLASSES.split())
"""Classes of sqlglot that have Spark's value, as they are or as :class:`_Translation` has them."""
_NUMBER: Final = r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*"
_DAY: Final = "[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
_TIME: Final = rf"\s*{_DAY}([ T][0-9]{{1,2}}:[0-9]{{2}}(:[0-9]{{2}}([.][0-9]{{1,6}})?)?"
_UNKNOWN: Final = "error('a value of this type cannot be cast so')"
_BAD: Final = "error('the string ' || v || ' cannot be cast to the type that is wanted')"
_TIMES: Final = f"(v DATE) AS {_UNKNOWN}, (v TIMESTAMP) AS {_UNKNOWN}"
_OTHER: Final = (
    "NOT regexp_full_match(typeof(v), '[A-Z]*INT(EGER)?|DECIMAL[^\\[]*|DOUBLE|FLOAT|.NULL.')"
)
_EXACT: Final = "a CASE WHEN b = 0 THEN error('division by zero') ELSE b END"
_FLOATS: Final = "('DOUBLE', 'FLOAT')"
PREFIX: Final = "SPARK_"
"""Of their names, in what :func:`in_duckdb` returns."""
MACROS: Final[Mapping[str, str]] = {
    "spark_whole": f"(v VARCHAR) AS CASE WHEN regexp_full_match(v, '\\s*[+-]?[0-9]+\\s*') "
    f"OR v IS NULL THEN v ELSE {_BAD} END, (v BOOLEAN) AS v, {_TIMES}, "
    "(v TIMESTAMPTZ) AS floor(epoch(v)), (v) AS trunc(v)",
    "spark_whole_or_null": "(v VARCHAR) AS CASE WHEN regexp_full_match(v, '\\s*[+-]?[0-9]+\\s*') "
    f"THEN v END, (v BOOLEAN) AS v, {_TIMES}, (v TIMESTAMPTZ) AS floor(epoch(v)), (v) AS trunc(v)",
    "spark_fraction": f"(v VARCHAR) AS CASE WHEN regexp_full_match(v, '{_NUMBER}') OR v IS NULL OR "
    "regexp_full_match(lower(v), '\\s*([+-]?inf(inity)?|nan)\\s*') "
    f"THEN v ELSE {_BAD} END, (v BOOLEAN) AS v, {_TIMES}, (v TIMESTAMPTZ) AS epoch(v), (v) AS v",
    "spark_exact": f"(v VARCHAR) AS CASE WHEN regexp_full_match(v, '{_NUMBER}') OR v IS NULL THEN "
    f"v ELSE {_BAD} END, (v BOOLEAN) AS CAST(v AS INT), {_TIMES}, (v TIMESTAMPTZ) AS {_UNKNOWN}, "
    f"(v) AS CASE WHEN {_OTHER} THEN {_UNKNOWN} "
    "WHEN typeof(v) = 'FLOAT' THEN CAST(CAST(v AS DOUBLE) AS VARCHAR) ELSE CAST(v AS VARCHAR) END",
    "spark_boolean": "(v VARCHAR) AS CASE WHEN v IS NULL THEN NULL "
    "WHEN lower(trim(v)) IN ('true', 't', 'yes', 'y', '1') THEN TRUE "
    f"WHEN lower(trim(v)) IN ('false', 'f', 'no', 'n', '0') THEN FALSE ELSE {_BAD} END, "
    f"(v BOOLEAN) AS v, {_TIMES}, (v TIMESTAMPTZ) AS {_UNKNOWN}, (v) AS CAST(v AS BOOLEAN)",
    "spark_date": f"(v VARCHAR) AS CASE WHEN v IS NULL OR regexp_full_match(v, '\\s*{_DAY}\\s*"
    f"([T ].*)?') THEN CAST(regexp_extract(v, '{_DAY}') AS DATE) ELSE {_BAD} END, "
    "(v DATE) AS v, (v TIMESTAMP) AS CAST(v AS DATE), (v TIMESTAMPTZ) AS CAST(v AS DATE)",
    "spark_timestamp": "(v VARCHAR) AS CASE WHEN v IS NULL OR regexp_full_match(v, "
    rf"'{_TIME}(Z|[+-][0-9]{{2}}:[0-9]{{2}})?)?\s*') THEN CAST(trim(v) AS TIMESTAMPTZ) "
    f"ELSE {_BAD} END, (v DATE) AS CAST(v AS TIMESTAMPTZ), (v TIMESTAMP) AS "
    "CAST(v AS TIMESTAMPTZ), (v TIMESTAMPTZ) AS v",
    "spark_local": "(v VARCHAR) AS CASE WHEN v IS NULL OR regexp_full_match(v, "
    rf"'{_TIME})?\s*') THEN CAST(trim(v) AS TIMESTAMP) ELSE {_BAD} END, (v DATE) AS "
    "CAST(v AS TIMESTAMP), (v TIMESTAMP) AS v, (v TIMESTAMPTZ) AS CAST(v AS TIMESTAMP)",
    "spark_string": "(v VARCHAR) AS v, (v BOOLEAN) AS CAST(v AS VARCHAR), (v DATE) AS "
    "CAST(v AS VARCHAR), (v TIMESTAMP) AS CAST(v AS VARCHAR), (v TIMESTAMPTZ) AS "
    "CAST(CAST(v AS TIMESTAMP) AS VARCHAR), "
    f"(v) AS CASE WHEN {_OTHER} THEN {_UNKNOWN} "
    f"WHEN typeof(v) IN {_FLOATS} AND v <> 0 AND NOT (abs(CAST(v AS DOUBLE)) >= 0.001 "
    "AND abs(CAST(v AS DOUBLE)) < 10000000) THEN "
    "error('a number as large, or as small, is another string in Spark') "
    "ELSE CAST(v AS VARCHAR) END",
    "spark_div": "(a, b) AS CASE WHEN (typeof(a) LIKE 'DECIMAL%' OR typeof(b) LIKE 'DECIMAL%') "
    f"AND typeof(a) NOT IN {_FLOATS} AND typeof(b) NOT IN {_FLOATS} THEN "
    "error('decimals are divided to a decimal in Spark: CAST one of them to DOUBLE') "
    "ELSE CAST(a AS DOUBLE) / CASE WHEN b = 0 THEN error('division by zero') ELSE b END END",
    "spark_mod": f"(a, b) AS {_EXACT.replace('a CASE', 'a % CASE')}",
    "spark_intdiv": "(a, b) AS CASE WHEN typeof(a) NOT LIKE '%INT%' OR typeof(b) NOT LIKE '%INT%' "
    "THEN error('div is about integers') ELSE CAST(a AS BIGINT) // b END",
    "spark_round": f"(v, n) AS CASE WHEN typeof(v) IN {_FLOATS} AND CAST(round(v, n) AS DOUBLE) <> "
    "CAST(TRY_CAST(CAST(v AS VARCHAR) AS DECIMAL(38, 12)) AS DOUBLE) AND abs(CAST(v AS DOUBLE) * "
    "pow(10, n) % 1) BETWEEN 0.4999999 AND 0.5000001 AND n <> 0 THEN "
    "error('a double as near to a half is rounded in another way in Spark: CAST it to DECIMAL') "
    "ELSE round(v, n) END",
    "spark_floor": "(v) AS CASE WHEN typeof(v) LIKE 'DECIMAL%' THEN "
    "error('it is a decimal in Spark: CAST it to DOUBLE') ELSE CAST(floor(v) AS BIGINT) END",
    "spark_ceil": "(v) AS CASE WHEN typeof(v) LIKE 'DECIMAL%' THEN "
    "error('it is a decimal in Spark: CAST it to DOUBLE') ELSE CAST(ceil(v) AS BIGINT) END",
    "spark_ln": "(v) AS CASE WHEN v > 0 THEN ln(v) END",
    "spark_sub": "(v, p) AS substring(v, CASE WHEN p = 0 THEN 1 ELSE p END), "
    "(v, p, l) AS substring(v, CASE WHEN p = 0 THEN 1 ELSE p END, CASE WHEN l < 0 THEN 0 "
    "ELSE l END)",
    "spark_left": "(v, n) AS left(v, CASE WHEN n < 0 THEN 0 ELSE n END)",
    "spark_right": "(v, n) AS right(v, CASE WHEN n < 0 THEN 0 ELSE n END)",
    "spark_upper": r"(v) AS CASE WHEN regexp_matches(v, '[\x{149}\x{1f0}\x{390}\x{3b0}\x{587}"
    r"\x{1e96}-\x{1e9a}\x{1f50}-\x{1ffc}\x{fb00}-\x{fb17}]') "
    "THEN error('a character is of several ones in upper case') ELSE upper(replace(v, 'ß', 'SS')) "
    "END",
    "spark_lower": "(v) AS CASE WHEN regexp_matches(v, '[İΣ]') THEN "
    "error('a character has several lower cases') ELSE lower(v) END",
    "spark_initcap": r"(v) AS CASE WHEN NOT regexp_full_match(v, '(?s)[\x00-\x7f]*') THEN "
    "error('initcap is about ASCII here') ELSE array_to_string(list_transform("
    "string_split(lower(v), ' '), LAMBDA w : upper(w[1]) || w[2:]), ' ') END",
    "spark_pattern": r"(v) AS CASE WHEN v IS NULL OR regexp_full_match(v, '(?s)([^\\]|\\[\\%_])*')"
    " THEN v ELSE error('in a pattern a backslash is before a backslash, % or _') END",
    "spark_at": "(a, i) AS CASE WHEN typeof(a) NOT LIKE '%]' OR i < 0 OR i >= len(a) "
    "THEN error('an index is outside of its array') ELSE a[i + 1] END",
    "spark_plus": "(a DATE, i) AS CASE WHEN CAST(CAST(a + i AS DATE) AS TIMESTAMP) <> a + i THEN "
    "error('a date and hours are a timestamp in Spark') ELSE CAST(a + i AS DATE) END, "
    "(a TIMESTAMP, i) AS a + i, (a TIMESTAMPTZ, i) AS a + i",
    "spark_as": "(v VARCHAR, l) AS l, (v BOOLEAN, l) AS spark_boolean(l::TEXT), (v DATE, l) AS "
    "spark_date(l::TEXT), (v TIMESTAMP, l) AS spark_timestamp(l::TEXT), (v TIMESTAMPTZ, l) AS "
    "spark_timestamp(l::TEXT), (v BIGINT, l) AS CAST(spark_whole(l::TEXT) AS BIGINT), "
    "(v FLOAT, l) AS CAST(spark_fraction(l::TEXT) AS DOUBLE), "
    "(v DOUBLE, l) AS CAST(spark_fraction(l::TEXT) AS DOUBLE)",
    "spark_number": "(v FLOAT, l) AS CAST(l AS DOUBLE), (v DOUBLE, l) AS l, (v BIGINT, l) AS l, "
    "(v, l) AS l",
}
"""Macros of DuckDB, in the order in which they need each other."""
_CASTS: Final = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), "spark_whole"),
    **dict.fromkeys(("FLOAT", "DOUBLE"), "spark_fraction"),
    "DECIMAL": "spark_exact",
    "BOOLEAN": "spark_boolean",
    "DATE": "spark_date",
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ"), "spark_timestamp"),
    "TIMESTAMPNTZ": "spark_local",
    **dict.fromkeys(("TEXT", "VARCHAR"), "spark_string"),
}
_NAMES: Final = {"tinyint", "smallint", "int", "bigint", "float", "double", "string", "boolean"}
_PARTS: Final = {
    "Year": "year",
    "Month": "month",
    "Day": "day",
    "DayOfMonth": "day",
    "Quarter": "quarter",
    "DayOfYear": "dayofyear",
    "WeekOfYear": "weekofyear",
}
_PATTERN: Final = re.compile(
    r"(?:[^\\.$*+?{}()\[\]|&]|\\[dDw\\.$*+?{}()\[\]|^/-]|\[\^?(?:[^\\\[\]&~]|\\[dw\\.\]^-])+\]"
    r"|\((?:\?:)?|[)|.]|[*+?]\??|\{[0-9]+(?:,[0-9]*)?\})*"
)


def in_duckdb(tree: Tree, text: str) -> str:
    """An expression, or a query, in the words of DuckDB."""
    translation = _Translation(importlib.import_module("sqlglot.expressions"), text)
    return str(translation.of(tree.copy()).sql(dialect="duckdb"))


@dataclass(frozen=True, slots=True)
class _Translation:
    exp: Any
    text: str

    def of(self, tree: Tree) -> Tree:
        """A tree whose parts are translated, from the leaves up."""
        nodes, rest = [], [tree]  # not by recursion: there may be thousands
        while rest:
            one = rest.pop()
            nodes.append(one)
            if not self._is_whole(one):
                rest += one.iter_expressions()
        for one in reversed(nodes):
            changed = self._changed(one)
            if one is tree:
                return changed
            if changed is not one:
                one.replace(changed)
        return tree

    def _is_whole(self, tree: Tree) -> bool:
        """Whether its translation sees to its parts; refuses what has none."""
        exp, name = self.exp, type(tree).__name__
        kinds = (exp.Func, exp.Binary, exp.Unary, exp.Predicate, exp.Interval, exp.Bracket)
        if isinstance(tree, kinds) and name not in _SAME:
            raise self._refusal(tree)
        return isinstance(tree, exp.Cast) or name in ("Escape", "Interval", "RegexpLike")

    def _changed(self, tree: Tree) -> Tree:
        exp = self.exp
        if isinstance(tree, exp.Literal) and tree.is_string:
            return exp.Cast(this=tree.copy(), to=exp.DataType.build("text"))
        own = getattr(self, f"_{type(tree).__name__.lower()}", None)
        return tree if own is None else own(tree)

    def _refusal(self, tree: Tree, reason: str = "") -> SchemaError:
        named = tree.name if isinstance(tree, self.exp.Anonymous) else tree.key
        shown = tree.sql(dialect="spark")
        return SchemaError(
            f"{shown!r} in {self.text!r} is not computed in this process as Spark does "
            f"({named.lower()}){reason}",
            "Compute it beforehand, as a column of the source, or let Spark do it: spark=.",
            text=self.text,
        )

    def _call(self, name: str, *args: Tree) -> Tree:
        return self.exp.Anonymous(this=name, expressions=[one.copy() for one in args])

    def _only(self, tree: Tree, *known: str) -> None:
        """Refuse arguments whose meaning is not known here."""
        if any(
            value not in (None, False, []) for key, value in tree.args.items() if key not in known
        ):
            raise self._refusal(tree)

    # --- casts -----------------------------------------------------------------------------------

    def _cast(self, tree: Tree) -> Tree:
        exp, kind = self.exp, tree.to.this.name
        macro = _CASTS.get(kind)
        is_text = kind in ("TEXT", "VARCHAR")
        if macro is None or tree.args.get("format") or (is_text and tree.to.expressions):
            raise self._refusal(tree)
        inner = self.of(tree.this)
        to = tree.to.copy()
        if isinstance(inner, exp.Null):
            return exp.Cast(this=inner.copy(), to=to)
        is_safe = bool(tree.args.get("safe"))
        if is_safe and macro != "spark_whole":
            raise self._refusal(tree)
        called = self._call(f"{macro}_or_null" if is_safe else macro, inner)
        return (exp.TryCast if is_safe else exp.Cast)(this=called, to=to)

    _trycast = _cast

    def _anonymous(self, tree: Tree) -> Tree:
        exp, name, args = self.exp, tree.name.lower(), tree.expressions
        if len(args) == 1 and name in _NAMES:
            return self._cast(exp.Cast(this=args[0].copy(), to=exp.DataType.build(name, "spark")))
        if len(args) == 1 and name in ("isnull", "isnotnull"):
            found = exp.Is(this=args[0].copy(), expression=exp.Null())
            return exp.Paren(this=exp.Not(this=found) if name == "isnotnull" else found)
        if name == "raise_error" and len(args) == 1:
            return self._call("error", args[0])
        if name.startswith("spark_") and name in MACROS:
            return tree
        raise self._refusal(tree)

    # --- numbers ---------------------------------------------------------------------------------

    def _macro(self, tree: Tree, *operands: Tree) -> Tree:
        """A call of the macro that has the name of the expression."""
        return self._call(f"spark_{type(tree).__name__.lower()}", *operands)

    def _of_two(self, tree: Tree) -> Tree:
        return self._macro(tree, *self._operands(tree))

    _div = _intdiv = _mod = _left = _right = _of_two

    def _of_one(self, tree: Tree) -> Tree:
        return self._macro(tree, tree.this)

    _ln = _upper = _lower = _initcap = _of_one

    def _of_one_alone(self, tree: Tree) -> Tree:
        self._only(tree, "this")
        return self._of_one(tree)

    _floor = _ceil = _of_one_alone

    def _operands(self, tree: Tree) -> tuple[Tree, Tree]:
        return tree.this, tree.expression

    def _round(self, tree: Tree) -> Tree:
        self._only(tree, "this", "decimals")
        decimals = tree.args.get("decimals") or self.exp.Literal.number(0)
        return self._call("spark_round", tree.this, decimals)

    # --- comparisons and sums --------------------------------------------------------------------

    def _is_text(self, tree: Tree) -> bool:
        exp = self.exp
        return isinstance(tree, exp.Cast) and isinstance(tree.this, exp.Literal)

    def _fitted(self, value: Tree, other: Tree) -> Tree:
        """A literal in the type in which Spark compares it with another."""
        exp, plain = self.exp, value.unnest()
        if isinstance(other.unnest(), exp.Null) or self._is_text(other.unnest()):
            return value
        if self._is_text(plain) and plain.this.is_string:
            return self._call("spark_as", other, plain)
        if isinstance(plain, exp.Literal) and "." in plain.name and not plain.is_string:
            return self._call("spark_number", other, plain)
        return value

    def _compared(self, tree: Tree) -> Tree:
        left, right = tree.this, tree.expression
        tree.set("this", self._fitted(left, right))
        tree.set("expression", self._fitted(right, left))
        return tree

    _eq = _neq = _lt = _lte = _gt = _gte = _nullsafeeq = _nullsafeneq = _mul = _compared

    def _add(self, tree: Tree) -> Tree:
        exp, other = self.exp, tree.expression
        if isinstance(other, exp.Interval):
            if isinstance(tree, exp.Sub):
                other = exp.Neg(this=exp.Paren(this=other.copy()))
            return self._call("spark_plus", tree.this, other)
        if isinstance(tree.this, exp.Interval):
            raise self._refusal(tree)
        return self._compared(tree)

    _sub = _add

    def _between(self, tree: Tree) -> Tree:
        for side in ("low", "high"):
            tree.set(side, self._fitted(tree.args[side], tree.this))
        return tree

    def _in(self, tree: Tree) -> Tree:
        fitted = [self._fitted(one, tree.this) for one in tree.expressions]
        tree.set("expressions", fitted)
        return tree

    def _interval(self, tree: Tree) -> Tree:
        exp, unit = self.exp, tree.args.get("unit")
        value = tree.this.unnest()
        plain = isinstance(value, exp.Literal) and re.fullmatch("-?[0-9]+", value.name)
        if not plain or not isinstance(unit, exp.Var):
            raise self._refusal(tree)
        return tree

    # --- strings ---------------------------------------------------------------------------------

    def _concat(self, tree: Tree) -> Tree:
        exp = self.exp
        parts = tree.expressions or list(self._operands(tree))
        start = 1 if isinstance(tree, exp.ConcatWs) else 0
        texts = [
            one.copy() if isinstance(one, exp.Null) else self._call("spark_string", one)
            for one in parts
        ]
        if start:
            return self._call("concat_ws", *texts)
        whole = texts[0]
        for one in texts[1:]:
            whole = exp.DPipe(this=whole, expression=one)
        return exp.Paren(this=whole)

    _dpipe = _concatws = _concat

    def _like(self, tree: Tree) -> Tree:
        exp, pattern = self.exp, tree.expression
        if isinstance(pattern, exp.Any | exp.All | exp.Tuple | exp.Paren):
            raise self._refusal(tree)
        sides = [tree.this, self._call("spark_pattern", pattern)]
        if isinstance(tree, exp.ILike):
            sides = [self._call("spark_lower", one) for one in sides]
        like = exp.Like(this=sides[0].copy(), expression=sides[1])
        found = exp.Escape(this=like, expression=exp.Literal.string("\\"))
        return self._negated(tree, found)

    def _negated(self, tree: Tree, found: Tree) -> Tree:
        """What ``NOT LIKE`` is, or ``LIKE``."""
        exp = self.exp
        return exp.Paren(this=exp.Not(this=found) if tree.args.get("negate") else found)

    _ilike = _like

    def _escape(self, tree: Tree) -> Tree:
        """A pattern with another escape."""
        exp, like, mark = self.exp, tree.this, tree.expression.name
        pattern = like.expression
        plain = isinstance(pattern, exp.Literal) and isinstance(like, exp.Like) and len(mark) == 1
        escaped = re.escape(mark)
        if not plain or not re.fullmatch(
            rf"(?s)([^{escaped}]|{escaped}[{escaped}%_])*", pattern.name
        ):
            raise self._refusal(tree)
        found = exp.Like(this=self.of(like.this).copy(), expression=pattern.copy())
        escape = exp.Escape(this=found, expression=exp.Literal.string(mark))
        return self._negated(like, escape)

    def _regexplike(self, tree: Tree) -> Tree:
        exp, pattern = self.exp, tree.expression
        given = pattern.name
        is_last = given.endswith("$") and not given.endswith("\\$")
        given = given.removesuffix("$") if is_last else given
        plain = isinstance(pattern, exp.Literal) and _PATTERN.fullmatch(given)
        if not plain or tree.args.get("flag") or tree.args.get("negate"):
            raise self._refusal(tree, ": its pattern is no plain one")
        ends = "\\n\\r\\x{85}\\x{2028}\\x{2029}"
        found = re.sub(
            r"\\.|\[(?:\\.|[^\]])+\]|\.",
            lambda one: f"[^{ends}]" if one[0] == "." else one[0],
            given,
        )
        found += rf"(?:\r\n|[{ends}])?\z" if is_last else ""
        return self._call("regexp_matches", self.of(tree.this), exp.Literal.string(found))

    def _substring(self, tree: Tree) -> Tree:
        parts = (tree.this, tree.args.get("start"), tree.args.get("length"))
        return self._call("spark_sub", *(one for one in parts if one is not None))

    def _strposition(self, tree: Tree) -> Tree:
        self._only(tree, "this", "substr")
        return tree

    def _replace(self, tree: Tree) -> Tree:
        self._only(tree, "this", "expression", "replacement")
        return tree

    def _bracket(self, tree: Tree) -> Tree:
        exp, [index] = self.exp, tree.expressions
        if self._is_text(index):
            return tree
        if tree.args.get("offset") or not isinstance(index, exp.Literal):
            raise self._refusal(tree)
        return self._call("spark_at", tree.this, index)

    # --- times -----------------------------------------------------------------------------------

    def _part(self, tree: Tree) -> Tree:
        day = self._tsordstodate(tree)
        return self._call(_PARTS[type(tree).__name__], day)

    _year = _month = _day = _dayofmonth = _quarter = _dayofyear = _weekofyear = _part

    def _tsordstodate(self, tree: Tree) -> Tree:
        self._only(tree, "this", "safe")
        inner = tree.this
        return inner if inner.name == "spark_date" else self._call("spark_date", inner)

    def _time(self, tree: Tree) -> Tree:
        self._only(tree, "this")
        return self._call(type(tree).__name__.lower(), self._call("spark_timestamp", tree.this))

    def _timetostr(self, tree: Tree) -> Tree:
        exp, given = self.exp, tree.args["format"]
        pattern = given.this.name if self._is_text(given) else ""
        if not re.fullmatch(r"(%Y|%[mdHMS]strict|[^%A-Za-z'\[\]#{}])+", pattern):
            raise self._refusal(tree)
        time = exp.Cast(this=tree.this.copy(), to=exp.DataType.build("timestamp", "duckdb"))
        return self._call("strftime", time, exp.Literal.string(pattern.replace("strict", "")))

    def _timestrtotime(self, tree: Tree) -> Tree:
        self._only(tree, "this")
        return self._call("spark_timestamp", tree.this)

    def _timestamptrunc(self, tree: Tree) -> Tree:
        exp, unit = self.exp, tree.args["unit"].name.upper()
        if unit not in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"):
            raise self._refusal(tree)
        time = self._call("spark_timestamp", tree.this)
        return self._call("date_trunc", exp.Literal.string(unit), time)

    def _extract(self, tree: Tree) -> Tree:
        unit = tree.this.name.lower()
        if unit not in ("year", "quarter", "month", "day", "week", "hour", "minute"):
            raise self._refusal(tree)
        return self._call(unit, self._call("spark_timestamp", tree.expression))

    _hour = _minute = _second = _time

    def _dayofweek(self, tree: Tree) -> Tree:
        exp = self.exp
        day = self._call("dayofweek", self._tsordstodate(tree))
        return exp.Paren(this=exp.Add(this=day, expression=exp.Literal.number(1)))

    def _tsordsadd(self, tree: Tree) -> Tree:
        exp, unit = self.exp, tree.args.get("unit")
        if unit is not None and unit.name.upper() != "DAY":
            raise self._refusal(tree)
        day, count = self._call("spark_date", tree.this), tree.expression.copy()
        return exp.Paren(this=exp.Add(this=day, expression=exp.Paren(this=count)))

    def _datediff(self, tree: Tree) -> Tree:
        exp, unit = self.exp, tree.args.get("unit")
        if unit is not None and unit.name.upper() != "DAY":
            raise self._refusal(tree)
        sides = [self._call("spark_date", one) for one in self._operands(tree)]
        return exp.Paren(this=exp.Sub(this=sides[0], expression=sides[1]))

    def _addmonths(self, tree: Tree) -> Tree:
        exp = self.exp
        day = self._call("spark_date", tree.this)
        added = exp.Add(this=day, expression=self._call("to_months", tree.expression))
        return exp.Cast(this=added, to=exp.DataType.build("date"))

    def _lastday(self, tree: Tree) -> Tree:
        self._only(tree, "this")
        return self._call("last_day", self._call("spark_date", tree.this))
