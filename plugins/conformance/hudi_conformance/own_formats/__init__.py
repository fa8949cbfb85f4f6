"""The suites of the project's own formats, registered as other packages register theirs.

Each is judged by a reader that is not this project's, which has to be installed:
``pip install hudi-conformance[formats]``.
"""
