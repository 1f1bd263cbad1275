//! What `plca compare` says of two fits.

use serde_json::json;

use crate::Folder;

/// The same components in another order, one of them changed, are found again, with the cosines of their blocks.
#[test]
fn components_are_matched_in_any_order() {
    let folder = Folder::with_counts();
    folder.ok("fit plca d.csv --rank 3 --seed 2 --output a.npz --quiet");
    let mut file = folder.model("a.npz");
    let order = [2, 0, 1];
    for array in file.arrays.values_mut() {
        let rows = array.values.chunks_exact(3);
        array.values = rows.flat_map(|row| order.map(|z| row[z])).collect();
    }
    file.metadata["objective"] = json!(1.5);
    plca_io::write_model(folder.path("b.npz"), &file, false).unwrap();
    let s = folder.json("compare a.npz b.npz");
    let pairs = s["pairs"].as_array().unwrap();
    // Component z of a is the place of z in the order.
    let partners: Vec<u64> = pairs.iter().map(|p| p["b"].as_u64().unwrap()).collect();
    assert_eq!(partners, [1, 2, 0]);
    assert!(
        (s["least_cosine"].as_f64().unwrap() - 1.0).abs() < 1e-12,
        "{s}"
    );
    let a = folder.model("a.npz").metadata["objective"]
        .as_f64()
        .unwrap();
    assert_eq!(s["objective_difference"], json!(1.5 - a));
    assert_eq!(
        (&s["same_data"], &s["settings"]),
        (&json!(true), &json!({}))
    );

    // One block of one component is turned away: its cosine, and the mean over the blocks, fall.
    let mut file = folder.model("a.npz");
    let block = file.arrays.get_mut("factor_0").unwrap();
    let column: Vec<f64> = block.values.iter().skip(1).step_by(3).copied().collect();
    let turned = [column[1], column[2], column[0]];
    for (at, x) in turned.iter().enumerate() {
        block.values[3 * at + 1] = *x;
    }
    plca_io::write_model(folder.path("c.npz"), &file, false).unwrap();
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    let expected = dot(&column, &turned) / dot(&column, &column);
    let s = folder.json("compare a.npz c.npz");
    let pair = &s["pairs"][1];
    let cosine = |value: &serde_json::Value| value.as_f64().unwrap();
    assert!(
        (cosine(&pair["blocks"]["factor_0"]) - expected).abs() < 1e-12,
        "{s}"
    );
    assert!(
        (cosine(&pair["cosine"]) - (1.0 + expected) / 2.0).abs() < 1e-12,
        "{s}"
    );
}

/// Fits of other ranks leave components alone; settings that differ are named.
#[test]
fn ranks_and_settings_may_differ() {
    let folder = Folder::with_counts();
    folder.ok("fit nmf-kl d.csv --rank 3 --output a.npz --quiet");
    folder.ok("fit nmf-kl d.csv --rank 2 --seed 4 --output b.npz --quiet");
    for (line, ranks) in [
        ("compare a.npz b.npz", [3, 2]),
        ("compare b.npz a.npz", [2, 3]),
    ] {
        let s = folder.json(line);
        assert_eq!(s["rank"], json!(ranks));
        assert_eq!(s["pairs"].as_array().unwrap().len(), 2);
        assert_eq!(s["settings"]["rank"], json!(ranks));
    }
    let text = folder.ok("compare a.npz b.npz");
    assert!(text.contains("seed  0  4"), "{text}");
    assert_eq!(text.matches("cosine").count() - 2, 2, "{text}");
    folder.text("wide.csv", "1,2,3,4,5\n5,4,3,2,1\n");
    folder.ok("fit nmf-kl wide.csv --rank 2 --output w.npz --quiet");
    folder.refuses("1 | compare a.npz w.npz | a.npz | w.npz | data of one shape");
}

/// Entries that have names are compared by these.
#[test]
fn blocks_are_compared_by_names() {
    let folder = Folder::new();
    folder.text(
        "v.csv",
        "id,sea,ship,wind,rain\na,9,7,1,0\nb,1,0,8,7\nc,8,9,0,1\n",
    );
    folder.text(
        "turned.csv",
        "id,rain,sea,wind,ship\na,0,9,1,7\nb,7,1,8,0\nc,1,8,0,9\n",
    );
    folder.text(
        "half.csv",
        "id,sea,ship,wind,rain\nd,0,1,7,9\ne,9,9,0,0\nf,8,8,1,1\n",
    );
    for name in ["v", "turned", "half"] {
        folder.ok(&format!(
            "fit plsa {name}.csv --labels first-column --given 0 --rank 2 --tol 1e-12 --output {name}.npz"
        ));
    }
    let turned = folder.json("compare v.npz turned.npz");
    assert!(
        turned["least_cosine"].as_f64().unwrap() > 0.9999,
        "{turned}"
    );
    assert_eq!(turned["left_out"], json!([]));
    // Other documents: their mixtures say nothing of each other.
    let half = folder.json("compare v.npz half.npz");
    assert_eq!(half["left_out"], json!(["mixture"]));
    for pair in half["pairs"].as_array().unwrap() {
        assert_eq!(pair["cosine"], pair["blocks"]["basis"], "{half}");
    }
    assert!(
        folder
            .ok("compare v.npz half.npz")
            .contains("left_out  mixture\n")
    );
}
