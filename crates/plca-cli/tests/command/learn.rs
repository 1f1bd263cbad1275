//! `plca learn`: priors of one data set after the other.

use serde_json::json;

use crate::Folder;

/// Three data sets of two components, of different widths.
fn sets() -> Folder {
    let folder = Folder::new();
    for (name, columns) in [("a", 12), ("b", 9), ("c", 15)] {
        let cell = |row: usize, column: usize| {
            let wave = [(column * 7 + name.len()) % 11, (column * 5 + 3) % 13];
            let atoms = [[6, 0], [-5, 2], [0, -7], [3, 3]];
            let x: i64 = (0..2).map(|z| atoms[row][z] * wave[z] as i64).sum();
            x.to_string()
        };
        let row = |row| {
            (0..columns)
                .map(|column| cell(row, column))
                .collect::<Vec<_>>()
                .join(",")
        };
        let rows: Vec<String> = (0..4).map(row).collect();
        folder.text(&format!("{name}.csv"), &(rows.join("\n") + "\n"));
    }
    folder
}

/// One data set at a time from the file of those before gives the file of all, for any number of threads.
#[test]
fn learning_goes_on_where_it_ended() {
    let folder = sets();
    for shared in ["", " --shared"] {
        let line = "--rank 2 --replicates 1 --seed 3 --quiet";
        let at_once = format!("learn skellam-vb a.csv b.csv c.csv -o all.npz {line}{shared}");
        folder.ok(&format!("{at_once} --threads 2"));
        folder.ok(&format!("learn skellam-vb a.csv -o one.npz {line}{shared}"));
        folder.ok(&format!(
            "learn skellam-vb b.csv c.csv -o one.npz --from one.npz {line}"
        ));
        let (all, one) = (folder.model("all.npz"), folder.model("one.npz"));
        assert_eq!(all.arrays, one.arrays);
        assert_eq!(all.metadata, one.metadata);
        assert_eq!(all.metadata["learner"]["seen"], 3);
        folder.ok(&format!(
            "learn skellam-vb a.csv b.csv -o two.npz {line}{shared}"
        ));
        assert_ne!(all.arrays, folder.model("two.npz").arrays);
    }
}

/// What is learnt of a data set explains it better than what learning began with, and stands in the file as `fit` reads it.
#[test]
fn learnt_priors_explain_the_data_better() {
    let folder = sets();
    let elbo = |priors: &str| {
        let line =
            format!("fit skellam-vb a.csv --rank 2 --replicates 1 -o fit.npz --quiet {priors}");
        folder.json(&line)["objective"].as_f64().unwrap()
    };
    let before = elbo("");
    for (shared, shapes) in [
        ("", [vec![4, 2, 2], vec![2, 1]]),
        (" --shared", [vec![1, 1, 2], vec![1, 1]]),
    ] {
        folder.ok(&format!(
            "learn skellam-vb a.csv -o priors.npz --rank 2 --replicates 1 --quiet{shared}"
        ));
        let arrays = folder.model("priors.npz").arrays;
        assert_eq!(arrays["atoms.dirichlet"].shape, shapes[0]);
        for name in ["activations.gamma_shape", "activations.gamma_rate"] {
            assert_eq!(arrays[name].shape, shapes[1], "{name}");
        }
        let after = elbo("--priors priors.npz");
        assert!(after > before + 1.0, "{before} {after}{shared}");
    }
}

/// A data set of hardly any weight leaves what `--prior` says.
#[test]
fn learning_begins_with_the_priors_given() {
    let folder = sets();
    let line = "learn skellam-vb a.csv -o p.npz --rank 2 --replicates 1 --shared --learning-rate constant:1e-12 --quiet";
    folder.ok(&format!(
        "{line} --prior atoms=dirichlet:3 --prior activations=gamma:2,0.25"
    ));
    let arrays = folder.model("p.npz").arrays;
    let near = |name: &str, want: f64| {
        let got = &arrays[name].values;
        assert!(
            got.iter().all(|x| (x - want).abs() < 1e-6 * want),
            "{name}: {got:?}"
        );
    };
    near("atoms.dirichlet", 3.0);
    near("activations.gamma_shape", 2.0);
    near("activations.gamma_rate", 0.25);
}

#[test]
fn what_cannot_be_learnt_is_refused() {
    let folder = sets();
    folder.text("short.csv", "1,2\n3,4\n");
    folder.ok("fit skellam-vb a.csv --rank 2 -o fit.npz --quiet");
    folder.refuses(
        "
            2 | learn plca a.csv -o p.npz --rank 2 | expected skellam --method vb
            2 | learn skellam-vb a.csv -o p.npz --rank 2 --learning-rate 2 | expected average
            2 | learn skellam-vb a.csv -o p.npz --rank 2 --learning-rate constant:0 | (0, 1]
            2 | learn skellam-vb a.csv -o p.npz --rank 0 | --rank
            2 | learn skellam-vb a.csv -o a.csv --rank 2 | the same file
            1 | learn skellam-vb a.csv -o p.csv --rank 2 | npz
            1 | learn skellam-vb a.csv -o p.npz --rank 2 --from fit.npz | no learner
        ",
    );
    // What was learnt before the data set that does not fit is kept.
    let out = folder.run("learn skellam-vb a.csv short.csv -o p.npz --rank 2 --quiet");
    let said = String::from_utf8(out.stderr).unwrap();
    assert!(
        out.status.code() == Some(1) && said.contains("short.csv"),
        "{said}"
    );
    assert_eq!(folder.model("p.npz").metadata["learner"]["seen"], 1);
    folder.refuses("1 | learn skellam-vb a.csv -o q.npz --rank 3 --from p.npz | a.csv");
}

/// A file that somebody has changed is refused, or does no harm.
#[test]
fn learners_of_other_hands_are_refused() {
    let folder = sets();
    let learn = |from: &str| format!("learn skellam-vb a.csv -o out.npz --rank 2 --from {from}");
    folder.ok("learn skellam-vb a.csv -o good.npz --rank 2 --quiet");
    let good = folder.model("good.npz");
    for (place, value, word) in [
        ("/seen", json!("two"), "`learner`"),
        ("/sharing/rows", json!(5), "expected"),
        ("/sharing/components", json!(3), "expected"),
        ("/sharing/components", json!(u64::MAX), "expected"),
        ("/hyperparameters/alpha", json!([]), "alpha"),
        ("/hyperparameters/rate", json!([-1.0, 1.0]), "rate"),
        ("/statistics/activations", json!([1.0]), "statistics"),
        (
            "/rate",
            json!({ "Constant": 7.0 }),
            "expected a number in [0, 1]",
        ),
    ] {
        let mut file = good.clone();
        let at = file.metadata["learner"].pointer_mut(place);
        *at.unwrap_or_else(|| panic!("{place}: {}", good.metadata)) = value;
        plca_io::write_model(folder.path("bad.npz"), &file, false).unwrap();
        folder.fails(1, &learn("bad.npz"), &[word]);
    }
    let mut slow = good;
    slow.metadata["learner"]["iterations"] = json!(u64::MAX);
    plca_io::write_model(folder.path("slow.npz"), &slow, false).unwrap();
    folder.ok(&format!("{} --quiet", learn("slow.npz")));
}

/// A data set after the first starts at the prior as learnt: without iterations it says of the atoms what was known.
#[test]
fn components_keep_their_places() {
    let folder = sets();
    folder.ok("learn skellam-vb a.csv -o a.npz --rank 2 --replicates 1 --quiet");
    folder.ok(
        "learn skellam-vb b.csv -o b.npz --rank 2 --replicates 1 --quiet --from a.npz --max-iter 0",
    );
    let atoms = |file| folder.model(file).arrays["atoms.dirichlet"].values.clone();
    let (before, after) = (atoms("a.npz"), atoms("b.npz"));
    // How sure the prior is of them may change, not what they are.
    let ratios = before.iter().zip(&after).map(|(a, b)| (b / a).ln());
    let least = ratios.clone().fold(f64::INFINITY, f64::min);
    let largest = ratios.fold(f64::NEG_INFINITY, f64::max);
    assert!(largest - least < 0.1, "{before:?} {after:?}");
}
