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

/// Files of every model, written before their states had facts: they are read, and mean what they meant.
#[test]
fn files_of_earlier_versions_are_read() {
    let folder = Folder::new();
    let kept = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/models");
    let mut files = 0;
    for entry in std::fs::read_dir(&kept).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if !(name.ends_with(".npz") || name.ends_with(".safetensors")) {
            continue;
        }
        files += 1;
        std::fs::copy(&path, folder.path(&name)).unwrap();
        folder.ok(&format!("reconstruct {name} --output now.npy"));
        // Of either sign.
        let options = plca_io::ReadOptions {
            allow_negative: true,
            ..plca_io::ReadOptions::default()
        };
        let read = |path: &std::path::Path| match plca_io::read_data_with::<f64>(path, &options)
            .unwrap()
        {
            plca_io::DataFile::Dense(array) => array,
            plca_io::DataFile::Sparse(_) => unreachable!("an array"),
        };
        let then = read(&kept.join(format!("{name}.npy")));
        let now = read(&folder.path("now.npy"));
        assert_eq!(then.shape, now.shape, "{name}");
        let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-6 * (1.0 + b.abs());
        let exact = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-12 * (1.0 + b.abs());
        let mut pairs = then.values.iter().zip(&now.values);
        match name.contains("f32") {
            true => assert!(pairs.all(near), "{name}"),
            false => assert!(
                pairs.all(exact),
                "{name} {:?} {:?}",
                then.values,
                now.values
            ),
        }
    }
    assert!(files >= 17, "{files}");
}
