//! What `reconstruct` gives back.

use crate::Folder;

/// A product of rank one, of which cells are hidden unevenly, is given back whole.
#[test]
fn hidden_cells_are_reconstructed_in_the_scale_of_the_data() {
    let folder = Folder::new();
    folder.text("d.csv", "2,4,6,8\n1,2,3,4\n5,10,15,20\n");
    folder.text("nan.csv", "nan,4,6,8\n1,nan,nan,4\n5,10,15,nan\n");
    let want = [2., 4., 6., 8., 1., 2., 3., 4., 5., 10., 15., 20.];
    for data in ["d.csv", "nan.csv --missing nan"] {
        for model in [
            "plca",
            "plca --missing-method multiplicative",
            "plsa",
            "plsa --given 0",
            "nmf-kl",
            "pntf",
            "ntf-l2",
        ] {
            let complete = data == "d.csv";
            if complete && model.contains("multiplicative") || !complete && model == "ntf-l2" {
                continue;
            }
            let line = format!("fit {model} {data} --rank 1 --tol 0 --max-iter 2000 --quiet");
            folder.ok(&format!("{line} --output o.npz"));
            folder.ok("reconstruct o.npz --output r.npy");
            let got = folder.dense("r.npy");
            assert_eq!(got.shape, [3, 4]);
            for (got, want) in got.values.iter().zip(want) {
                assert!((got - want).abs() <= 1e-6 * want, "{line}: {got} {want}");
            }
            folder.ok("inspect o.npz");
        }
    }
}

/// Of a given index of which nothing was seen, nothing is claimed.
#[test]
fn a_wholly_hidden_column_has_no_mass_under_plsa() {
    let folder = Folder::new();
    folder.text("nan.csv", "2,nan,6\n1,nan,3\n");
    folder.run("fit plsa nan.csv --missing nan --rank 1 --output o.npz --quiet");
    folder.ok("reconstruct o.npz --output r.npy");
    let got = folder.dense("r.npy").values;
    assert_eq!((got[1], got[4]), (0.0, 0.0));
    assert!((got[2] - 6.0).abs() < 1e-6, "{got:?}");
}
