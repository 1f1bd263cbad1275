"""As in scanpy: programs of genes of single cells, kept in the annotated data."""

from types import SimpleNamespace

from plcakit import ad
from plcakit.datasets import make_corpus

made = make_corpus(n_documents=200)                       # counts of 54 genes in 200 cells would look alike
counts, genes = made.counts, made.words
try:
    from anndata import AnnData

    cells = AnnData(counts)
    cells.var_names = genes
except ImportError:                                       # anything with these fields will do
    cells = SimpleNamespace(X=counts, layers={}, obsm={}, varm={}, uns={}, var_names=genes)

ad.nmf(cells, 4, n_init=5, random_state=0)                # obsm["X_nmf"], varm["nmf"], uns["nmf"]
ad.plsa(cells, 4, n_init=5, random_state=0, key_added="programs")
print("usage of the programs:", cells.obsm["X_programs"].shape, " loadings of the genes:", cells.varm["programs"].shape)
for loadings in cells.varm["programs"].T:
    print("   ", *[genes[g] for g in loadings.argsort()[::-1][:6]])
print("ended as", cells.uns["nmf"]["stop_reason"], "after", cells.uns["nmf"]["n_iter"], "iterations")
# Next: scanpy.pp.neighbors(cells, use_rep="X_programs")
