"""Files written by numpy and scipy for tests/reference.rs. Run here: python generate.py
(`earlier.store` is not among them: an earlier version of the command wrote it for tests/store.rs.)

Every dense file holds the same 2 x 3 matrix 0 1 2 / 3 4 5 (bool: 0 1 1 / 1 1 1), every sparse one
the 3 x 4 matrix with 1.5 at (0, 1), 2 at (2, 0) and 3 at (2, 3).
"""
import numpy as np
import scipy.sparse as sp

a = np.arange(6).reshape(2, 3)
for dtype in "f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8".split():
    for order, name in (("<", "le"), (">", "be")):
        np.save(f"dense_{dtype}_{name}.npy", a.astype(order + dtype))
np.save("dense_bool.npy", a.astype(bool))
np.save("dense_fortran.npy", np.asfortranarray(a.astype("f8")))
for version in (2, 3):
    with open(f"dense_version{version}.npy", "wb") as f:
        np.lib.format.write_array(f, a.astype("f8"), version=(version, 0))
np.savez("dense_stored.npz", a.astype("f8"))
np.savez_compressed("dense_deflated.npz", v=a.astype("f8"))
np.savez("two_arrays.npz", v=a, w=a)

np.save("bad_order0.npy", np.float64(3))
np.save("bad_complex.npy", a.astype("c16"))
np.save("bad_text.npy", a.astype("U3"))
np.save("bad_object.npy", a.astype(object), allow_pickle=True)
np.save("bad_structured.npy", np.zeros(2, dtype=[("x", "f8")]))

s = sp.coo_array(([1.5, 2, 3], ([0, 2, 2], [1, 0, 3])), shape=(3, 4))
for name in "coo csr csc".split():
    m = s.asformat(name)
    sp.save_npz(f"sparse_{name}.npz", m, compressed=True)
    sp.save_npz(f"sparse_{name}_stored.npz", m, compressed=False)
m = sp.csr_array(s)
m.indices, m.indptr = m.indices.astype("i8"), m.indptr.astype("i8")
sp.save_npz("sparse_csr_int64.npz", m)
sp.save_npz("bad_dia.npz", s.asformat("dia"))

# MATLAB files, in the byte order of the machine: little endian. The tests make those of the other order.
from scipy.io import savemat

for dtype in "f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 bool".split():
    savemat(f"dense_{dtype}.mat", {"v": a.astype(dtype)})
savemat("dense_packed.mat", {"v": a.astype("f8")}, do_compression=True)
savemat("dense_cube.mat", {"v": np.arange(24.0).reshape(2, 3, 4)})
for packed, name in ((False, ""), (True, "_packed")):
    savemat(f"sparse{name}.mat", {"v": sp.csc_array(s)}, do_compression=packed)
savemat("sparse_bool.mat", {"v": sp.csc_array(s).astype(bool)})
savemat("two_arrays.mat", {"v": a, "w": sp.csc_array(s), "note": "text", "cells": np.array([1, "b"], dtype=object)})
savemat("bad_complex.mat", {"v": a.astype("c16")})
savemat("bad_struct.mat", {"v": {"a": 1.0}, "note": "text"})
savemat("bad_level4.mat", {"v": a.astype("f8")}, format="4")

# Long tables in Parquet: the sparse matrix as rows of its entries.
import pyarrow as pa
import pyarrow.parquet as pq

def table(index="i8", value="f8", **more):
    columns = {"index_0": s.coords[0].astype(index), "index_1": s.coords[1].astype(index), "value": s.data.astype(value)}
    return pa.table({**columns, **more})

for codec in "none snappy gzip zstd".split():
    pq.write_table(table(), f"long_{codec}.parquet", compression=codec)
pq.write_table(table(), "long_version2.parquet", data_page_version="2.0", row_group_size=2, use_dictionary=False)
pq.write_table(table("i4", "f4"), "long_i4_f4.parquet")
pq.write_table(table("u1", "u8"), "long_u1_u8.parquet", column_encoding="PLAIN", use_dictionary=False)
pq.write_table(table(name=["a", "b", "c"]).select(["value", "name", "index_1", "index_0"]), "long_more.parquet")
pq.write_table(table(index_2=[0, 1, 0]), "long_order3.parquet")
pq.write_table(table().set_column(0, "index_0", pa.array(["x", "y", "y"])), "bad_text.parquet")
pq.write_table(table().set_column(2, "value", pa.array([1.0, None, 2.0])), "bad_null.parquet")
pq.write_table(table().set_column(0, "index_0", pa.array([0, -1, 2])), "bad_negative.parquet")
pq.write_table(table().set_column(0, "index_0", pa.array([0, 1, 2], pa.date32())), "bad_date.parquet")
pq.write_table(table().drop_columns(["index_0"]), "bad_columns.parquet")
pq.write_table(table(), "bad_lz4.parquet", compression="lz4")
