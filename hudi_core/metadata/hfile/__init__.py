"""HFile version 3: sorted keys and values in blocks.

Order of a file (``hudi-format`` section 5)::

    data blocks | meta blocks | root data index | meta index | file info | trailer (4096 bytes)

Reading needs the trailer, the three blocks before it ("load on open"), and the data blocks that may
hold what is asked for. A log block of the metadata table holds a whole such file.

No Python package reads or writes HFiles: clients of HBase talk to its servers, and ``hudi``
(hudi-rs) 0.5 reads those of a table inside and hands out neither keys nor blocks.
"""
