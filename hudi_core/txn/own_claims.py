"""Claims of a table to its storage paths, before changes.

Data files below a storage path are those of one table. A copy of the table's folder names the same
files, and its cleans and rollbacks would delete them under the original.
"""

from __future__ import annotations

from hudi_core.errors import StoragePathTakenError
from hudi_core.model.capability import Capability
from hudi_core.storage.claims import Claim, claim_of, put_claim
from hudi_core.storage.federated import FederatedStorage
from hudi_core.table_handle import OpenTable


def require_own_claims(table: OpenTable) -> None:
    """Refuse to change a table whose files are claimed by another folder.

    A claim that is missing is put again. Costs a request for each storage path.

    The claim of another folder means that this table was copied or moved.
    """
    client, host = table.client, table.host
    data, name = client.data, client.config.name
    if not isinstance(data, FederatedStorage):
        return
    for root in data.root_storages:
        found = claim_of(root, name)
        if found is None:
            if host.name != client.config.table_format:
                continue  # it replaces a format that cannot be asked
            shared = Capability.SHARED_STORAGE_PATH in host.capabilities
            folders = () if shared else tuple(host.get_metadata_folders(client))
            put_claim(root, Claim(name, client.base_path, host.name, folders))
        elif found.base_path != client.base_path:
            raise StoragePathTakenError(
                root.root,
                f"its files of the table {name} are those of the table at {found.base_path}",
                f"Write to the table there. If it was moved to {client.base_path}, and is there no "
                f"more, delete {root.root}/{found.path} first.",
            )
