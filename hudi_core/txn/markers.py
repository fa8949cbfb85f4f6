from enum import StrEnum
from dataclasses import dataclass
class MarkerKind(StrEnum):
    CREATE="CREATE"; MERGE="MERGE"; APPEND="APPEND"
@dataclass(frozen=True)
class Marker:
    partition_path: str; file_name: str; kind: MarkerKind
def temp_folder(instant): return f".hoodie/.temp/{instant}"
class Markers:
    def __init__(self, storage, instant): self.s=storage; self.i=instant
    def create(self, pp, name, kind):
        self.s.put(f"{temp_folder(self.i)}/{pp+'/' if pp else ''}{name}.marker.{kind}", b"")
    def list(self):
        out=[]; base=temp_folder(self.i)+"/"
        for f in self.s.list(temp_folder(self.i), True):
            rel=f.path[len(base):]
            if ".marker." not in rel: continue
            p,k=rel.rsplit(".marker.",1)
            pp,_,n=p.rpartition("/")
            out.append(Marker(pp,n,MarkerKind(k)))
        return out
    def delete_all(self): self.s.delete_tree(temp_folder(self.i))
