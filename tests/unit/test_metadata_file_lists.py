"""Lists of files decoded into columns say what they say record by record, damaged ones too."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.errors import CorruptMetadataError
from hudi_core.metadata.file_lists import _decoded, columns_of_lists, decode_lists
from hudi_core.metadata.hfile import HFileOptions, HFileReader, write_hfile
from hudi_core.metadata.layers import BaseLayer
from hudi_core.metadata.record_codec import RecordDecoder, RecordEncoder
from hudi_core.metadata.records import FileEntry, FileList, MetadataRecord, RecordType
from hudi_core.model.file_columns import FileColumns

PATH = "/table/.hoodie/metadata/files/f.hfile"
ENCODER = RecordEncoder("f.hfile")
endings = st.sampled_from([".parquet", ".parquet", ".parquet", ".orc", ".log.1_0-0-0"])
names = st.builds("{}_{}{}".format, st.text("abc-.é", max_size=70), st.integers(0, 99), endings)
entries = st.builds(
    FileEntry,
    st.one_of(st.integers(0, 200), st.integers(0, 2**62)),
    st.sampled_from([False] * 9 + [True]),
)
lists = st.dictionaries(
    st.text("pq=/é", min_size=1, max_size=9),
    st.dictionaries(names, entries, max_size=6).map(FileList),
    max_size=6,
)


def encoded(content: dict[str, FileList]) -> list[tuple[bytes, bytes]]:
    return [
        ENCODER.encode(MetadataRecord(key, RecordType.FILES, found))
        for key, found in sorted(content.items(), key=lambda item: item[0].encode())
    ]


def by_name(found: FileColumns) -> dict[str, dict[str, int]]:
    told: dict[str, dict[str, int]] = {key: {} for key in found.partitions.to_pylist()}
    keys = found.partitions.to_pylist()
    for owner, name, size in zip(
        found.owners.tolist(), found.names.to_pylist(), found.sizes.tolist(), strict=True
    ):
        assert name not in told[keys[owner]]
        told[keys[owner]][name] = size
    return told


def present(content: dict[str, FileList]) -> dict[str, dict[str, int]]:
    return {
        key: {name: one.size for name, one in found.files.items() if not one.is_deleted}
        for key, found in content.items()
    }


def listed(*files: str) -> FileList:
    return FileList({name: FileEntry(len(name)) for name in files})


@given(lists)
def test_columns_hold_what_records_hold(content: dict[str, FileList]) -> None:
    found = decode_lists(encoded(content), ENCODER.schema, PATH)
    assert by_name(columns_of_lists(content)) == present(content)
    if found is not None:
        assert by_name(found) == present(content)


def test_names_that_end_alike_are_read_all_at_once() -> None:
    content = {
        "p": listed(*(f"{number}-0_0-0-0_20260101000000000.parquet" for number in range(2000))),
        "empty": FileList({}),
        "q": listed("a.parquet_1.parquet", ".parquet", "x" * 200 + ".parquet"),
    }
    found = decode_lists(encoded(content), ENCODER.schema, PATH)
    # what looks like the end of a name within one is not mistaken for it, but not guessed either
    assert found is None
    content["q"] = listed(".parquet", "x" * 200 + ".parquet")
    found = decode_lists(encoded(content), ENCODER.schema, PATH)
    assert found is not None
    assert by_name(found) == present(content)


@given(st.data())
def test_damage_is_seen_or_makes_no_difference(data: st.DataObject) -> None:
    content = {"p": listed("a_1.parquet", "b_22.parquet"), "q": listed("c_3.parquet")}
    pairs = encoded(content)
    which = data.draw(st.integers(0, len(pairs) - 1))
    key, value = pairs[which]
    place = data.draw(st.integers(0, len(value) - 1))
    change = data.draw(st.integers(1, 255))
    pairs[which] = key, value[:place] + bytes([value[place] ^ change]) + value[place + 1 :]
    found = decode_lists(pairs, ENCODER.schema, PATH)
    if found is None:
        return
    decoder = RecordDecoder(ENCODER.schema, PATH)
    try:
        records = [decoder.decode(*pair) for pair in pairs]
    except CorruptMetadataError:
        # in a field that lists have nothing to do with
        assert by_name(found) == present(content)
        return
    said = {one.key: one.payload for one in records if one is not None}
    assert all(isinstance(payload, FileList) for payload in said.values())
    assert by_name(found) == present(said)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "record",
    [
        MetadataRecord("p", RecordType.FILES, FileList({"../x.parquet": FileEntry(1)})),
        MetadataRecord("p", RecordType.FILES, FileList({"x.parquet": FileEntry(-1)})),
        MetadataRecord("p", RecordType.ALL_PARTITIONS, FileList({"x.parquet": FileEntry(1)})),
        MetadataRecord("p", RecordType.FILES, None),
    ],
)
def test_what_is_not_right_is_left_to_those_who_say_what(record: MetadataRecord) -> None:
    good = ENCODER.encode(MetadataRecord("o", RecordType.FILES, listed("y.parquet")))
    assert decode_lists([good], ENCODER.schema, PATH) is not None
    assert decode_lists([good, ENCODER.encode(record)], ENCODER.schema, PATH) is None


def test_selected_lists_come_in_the_order_asked_for() -> None:
    content = {
        "a": listed("a1.parquet", "a2.parquet"),
        "b": FileList({}),
        "c": listed("c1.parquet"),
    }
    found = columns_of_lists(content)
    some = found.select(["c", "missing", "a"])
    assert some.owners.tolist() == [0, 2, 2]
    assert some.names.to_pylist() == ["c1.parquet", "a1.parquet", "a2.parquet"]
    assert found.known(["c", "missing"]).to_pylist() == [True, False]
    both = found.select(["a"]).with_others(found.select(["c"]))
    assert by_name(both) == present({key: content[key] for key in "ac"})


def test_the_files_of_a_group_go_together() -> None:
    one, two = "f1_0-0-0_20260101000000000.parquet", "f1_0-0-0_20260102000000000.parquet"
    log, other = ".f2_20260101000000000.log.1_0-0-0", "f2_0-0-0_20260101000000000.parquet"
    # the same ids in two partitions are two file groups
    found = columns_of_lists({"p": listed(one, two, other), "q": listed(one, log)})
    found = found.with_others(columns_of_lists({"r": listed(one)}))
    names = found.names.to_pylist()

    def together(*rows: int) -> list[int]:
        wanted = np.zeros(len(names), np.bool_)
        wanted[[*rows]] = True
        places: list[int] = found.with_their_groups(wanted).tolist()
        return places

    assert together() == []
    assert together(0) == together(1) == [0, 1]
    assert together(2) == [2]
    assert together(3, 4) == [3, 4]
    assert together(5) == [5]


def test_a_list_that_cannot_be_read_names_the_file() -> None:
    bad = MetadataRecord("p", RecordType.FILES, FileList({"a/b.parquet": FileEntry(1)}))
    data = write_hfile([ENCODER.encode(bad)], HFileOptions(ENCODER.schema, 0))
    layer = BaseLayer(PATH, HFileReader.from_bytes(data, PATH))
    with pytest.raises(CorruptMetadataError, match=r"'a/b\.parquet' is not the name of a file"):
        _decoded(layer, layer.reader.entries())
