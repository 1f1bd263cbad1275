//! States from files whose metadata were written by somebody else.

use nalgebra::{dmatrix, dvector};
use plca_em::{PlcaState, State};
use plca_io::{ModelFile, load, save, write_model};
use serde_json::json;

fn state() -> PlcaState<f64> {
    let factors = vec![dmatrix![0.5, 0.0; 0.5, 1.0], dmatrix![0.25, 0.5; 0.75, 0.5]];
    PlcaState::new(dvector![0.25, 0.75], factors).unwrap()
}

#[test]
fn what_is_no_number_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.npz");
    save(&path, &state()).unwrap();
    assert_eq!(
        load::<PlcaState<f64>>(&path).unwrap().parameters(),
        state().parameters()
    );
    for (pointer, part) in [
        ("/data/total", "`data.total` is \"x\", expected a number"),
        ("/iteration", "`iteration` is \"x\", expected a number"),
        ("/power", "`power` is \"x\", expected a number"),
        ("/facts", "fact `given` is \"x\", expected numbers"),
        ("/blocks", "has blocks without names"),
    ] {
        let mut file = ModelFile::of(&state());
        *file.metadata.pointer_mut(pointer).unwrap() = match pointer {
            "/facts" => json!({ "given": "x" }),
            "/blocks" => json!([1]),
            _ => json!("x"),
        };
        write_model(&path, &file, false).unwrap();
        let error = load::<PlcaState<f64>>(&path).unwrap_err().to_string();
        assert!(error.ends_with(part), "{pointer}: {error}");
    }
}
