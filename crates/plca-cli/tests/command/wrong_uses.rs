//! Wrong uses: each ends with one line that says what was expected, and what to do.

use crate::Folder;

/// A line, its exit status, and what its error says.
type Use = (&'static str, i32, &'static [&'static str]);

const USES: &[Use] = &[
    // The command line.
    (
        "fti plca d.csv",
        2,
        &["'fti'", "fit, transform", "see plca --help"],
    ),
    (
        "fit plca d.csv --rank 2 --rnak 3 -o o.npz",
        2,
        &["'--rnak'", "'--rank'", "see plca fit --help"],
    ),
    (
        "fit plca d.csv --rank 2",
        2,
        &["--output <FILE>", "see plca fit --help"],
    ),
    (
        "fit plca --rank 2 -o o.npz",
        2,
        &["<DATA>", "see plca fit --help"],
    ),
    (
        "fit d.csv --rank 2 -o o.npz",
        2,
        &["'d.csv'", "<MODEL>", "[possible values: nmf, plca, plsa,"],
    ),
    (
        "fit plcaa d.csv --rank 2 -o o.npz",
        2,
        &["'plcaa'", "a similar value exists: 'plca'"],
    ),
    (
        "fit plca d.csv --rank 2 --rank 3 -o o.npz",
        2,
        &["--rank <K>", "multiple times"],
    ),
    (
        "fit plca d.csv --rank two -o o.npz",
        2,
        &["'two'", "--rank <K>", "a whole number >= 0 is needed"],
    ),
    (
        "fit plca d.csv --rank 0 -o o.npz",
        2,
        &["--rank 0", "at least one component"],
    ),
    (
        "fit plca d.csv -o o.npz",
        2,
        &["--rank K is required", "--init"],
    ),
    (
        "fit plca d.csv --rank 2 --tol small -o o.npz",
        2,
        &["'small'", "--tol <T>", "not a number"],
    ),
    (
        "fit plca d.csv --rank 2 --tol -1 -o o.npz",
        2,
        &["'-1'", "--tol <T>", "a finite number >= 0"],
    ),
    (
        "fit plca d.csv --rank 2 --max-iter -5 -o o.npz",
        2,
        &["'-5'", "--max-iter <N>", "a whole number >= 0"],
    ),
    (
        "fit plca d.csv --rank 2 --seed x -o o.npz",
        2,
        &["'x'", "--seed <S>", "a whole number >= 0"],
    ),
    (
        "fit plca d.csv --rank 2 --threads 0 -o o.npz",
        2,
        &["--threads 0", "at least one thread"],
    ),
    (
        "fit plca d.csv --rank 2 --restarts 0 -o o.npz",
        2,
        &["--restarts 0", "at least one start"],
    ),
    (
        "fit plca d.csv --rank 2 --check-every 0 -o o.npz",
        2,
        &["--check-every 0", "at least 1"],
    ),
    (
        "fit plca d.csv --rank 2 --solver newton -o o.npz",
        2,
        &["'newton'", "--solver <HOW>", "em, squarem"],
    ),
    (
        "fit plca d.csv --rank 2 --missing zeros -o o.npz",
        2,
        &["'zeros'", "nan, unstored"],
    ),
    (
        "fit plca d.csv --rank 2 --delimiter ;; -o o.npz",
        2,
        &["';;'", "one ASCII character", "tab"],
    ),
    (
        "sample m.npz --draws many -o s.npy",
        2,
        &["'many'", "--draws <N>", "a whole number >= 0"],
    ),
    (
        "select plca d.csv",
        2,
        &["--ranks <A..B>", "see plca select --help"],
    ),
    (
        "select plca d.csv --ranks 5..2",
        2,
        &["--ranks 5..2", "A..B or A,B,C", "A <= B"],
    ),
    (
        "inspect m.npz --labels w.txt",
        2,
        &["--array <NAME>", "see plca inspect --help"],
    ),
    ("man fti", 2, &["fti", "expected one of fit, transform"]),
    ("completions csh", 2, &["'csh'", "bash"]),
    // Options that the model does not have, and pairs that do not go together.
    (
        "fit plca d.csv --rank 2 --kernel 2x2 -o o.npz",
        2,
        &["plca has no option --kernel", "plca fit plca --help"],
    ),
    (
        "fit nmf-kl d.csv --rank 2 --temper .5 -o o.npz",
        2,
        &["nmf-kl has no option --temper", "plca fit nmf-kl --help"],
    ),
    (
        "fit siplca d.csv --rank 2 --kernel 2x2 --solver fast -o o.npz",
        2,
        &["siplca has no --solver fast", "use --solver em"],
    ),
    (
        "fit plca d.csv --rank 2 --accelerate squarem --solver fast -o o.npz",
        2,
        &[
            "--accelerate cannot be combined with --solver fast",
            "use --solver em",
        ],
    ),
    (
        "fit nmf-kl d.csv --rank 2 --update simultaneous --missing-method multiplicative -o o.npz",
        2,
        &["multiplicative", "the sequential form"],
    ),
    (
        "fit plca d.csv --rank 2 --temper 1.5 -o o.npz",
        2,
        &["--temper", "1.5", "a power in (0, 1]"],
    ),
    (
        "fit plca d.csv --rank 2 --temper-prior -o o.npz",
        2,
        &["--temper-prior needs --temper B"],
    ),
    (
        "fit plca d.csv --rank 2 --kkt-tol 1e-3 --tol 0 -o o.npz",
        2,
        &["--kkt-tol cannot be combined with --tol 0"],
    ),
    (
        "fit plca d.csv --rank 2 --checkpoint c.npz -o o.npz",
        2,
        &["--checkpoint-every <N>"],
    ),
    (
        "fit plca d.csv --rank 2 --passes 3 -o o.npz",
        2,
        &["--online <KAPPA,T0>"],
    ),
    (
        "fit plca d.csv --rank 2 --online 3 -o o.npz",
        2,
        &["'3'", "KAPPA,T0, average or constant:RHO"],
    ),
    (
        "fit plca d.csv d.csv --rank 2 -o o.npz",
        2,
        &["several files", "--online"],
    ),
    (
        "fit plca d.tns --rank 2 -o o.npz --out-of-core s.store --mask mask.npy",
        2,
        &["--mask cannot be combined with --out-of-core"],
    ),
    (
        "fit tiplca d.csv --rank 2 --kernel 2x2 --angles a,b -o o.npz",
        2,
        &["'a'", "--angles", "not a number"],
    ),
    (
        "fit tiplca d.csv --rank 2 --kernel 2x2 --rotations 4 --angles 10,20 -o o.npz",
        2,
        &["--rotations", "cannot be used with", "--angles"],
    ),
    (
        "select kmeans d.csv --ranks 2..3",
        2,
        &["kmeans has no table of scores", "expected one of plca"],
    ),
    (
        "select plca d.csv --ranks 2..3 --criterion elbo",
        2,
        &["elbo", "bic, aic, held-out"],
    ),
    (
        "consensus skellam d.csv --ranks 2 -o o.npz",
        2,
        &["skellam has no consensus", "expected one of plca"],
    ),
    // Kernels and dimensions.
    (
        "fit siplca d.csv --rank 2 -o o.npz",
        2,
        &["--kernel is needed", "--init"],
    ),
    (
        "fit siplca d.csv --rank 2 --kernel 2 -o o.npz",
        2,
        &["--kernel", "[3, 4]", "expected 2, one for each dimension"],
    ),
    (
        "fit siplca d.csv --rank 2 --kernel 9x9 -o o.npz",
        1,
        &["d.csv", "3 x 4", "expected at least 9 x at least 9"],
    ),
    (
        "fit siplca d.csv --rank 2 --kernel 0x2 -o o.npz",
        2,
        &["kernel", "expected extents of at least 1"],
    ),
    (
        "fit siplca d.csv --rank 2 --kernel axb -o o.npz",
        2,
        &["'axb'", "`a` is not a whole number"],
    ),
    (
        "fit siplca d.csv --rank 2 --kernel 2x2 --support inside -o o.npz",
        2,
        &["'inside'", "valid, same, full"],
    ),
    (
        "fit siplca d.csv --rank 2 --kernel 2x2 --support valid,same,full -o o.npz",
        2,
        &["3 supports", "expected one for all dimensions"],
    ),
    (
        "fit siplca d.csv --rank 2 --kernel 2x2 --anneal 3 -o o.npz",
        2,
        &["'3'", "ALPHA0,T is needed"],
    ),
    (
        "fit siplca d.csv --rank 2 --kernel 2x2 --anneal 3,10 -o o.npz",
        2,
        &["anneal", "expected a first power in (0, 1]"],
    ),
    (
        "fit plsa d.csv --rank 2 --given 2 -o o.npz",
        2,
        &["'2'", "--given <D>", "0..=1"],
    ),
    (
        "fit skellam d.csv --rank 2 --replicates 0 -o o.npz",
        2,
        &["'0'", "a whole number >= 1 nor inf"],
    ),
    (
        "fit skellam-cp d.csv --rank 2 --signed-mode 7 -o o.npz",
        2,
        &["7"],
    ),
    (
        "transform m.npz d.csv --along 7 -o n.npz",
        2,
        &["--along 7", "along dimension 0 or 1"],
    ),
    (
        "fit kmeans d.csv --rank 2 --seeding best -o o.npz",
        2,
        &["'best'", "plus-plus, random"],
    ),
    (
        "fit kmeans d.csv --rank 9 -o o.npz",
        1,
        &["d.csv", "4 columns", "expected a rank of at most 4"],
    ),
    // Blocks and priors.
    (
        "fit plca d.csv --rank 2 --freeze factor_0 -o o.npz",
        2,
        &["--freeze factor_0", "--init FILE"],
    ),
    (
        "fit plca d.csv --rank 2 --freeze w -o o.npz",
        2,
        &["--freeze w", "expected one of weights, factor_0"],
    ),
    (
        "fit plca d.csv --rank 2 --freeze-entries i.npz -o o.npz",
        2,
        &["--init <FILE>"],
    ),
    (
        "fit plca d.csv --rank 2 --prior weights -o o.npz",
        2,
        &[
            "--prior weights",
            "BLOCK=SPEC is needed",
            "weights=dirichlet:2",
        ],
    ),
    (
        "fit plca d.csv --rank 2 --prior weights=beta:1 -o o.npz",
        2,
        &["beta:1", "expected one of dirichlet:A"],
    ),
    (
        "fit plca d.csv --rank 2 --prior w=dirichlet:1 -o o.npz",
        2,
        &["`w`", "expected one of factor_0"],
    ),
    (
        "fit plca d.csv --rank 2 --prior weights=dirichlet:-1 -o o.npz",
        2,
        &["alpha", "-1"],
    ),
    (
        "fit plca d.csv --rank 2 --priors p.npz -o o.npz",
        1,
        &["p.npz", "BLOCK.KIND is needed", "weights.dirichlet"],
    ),
    (
        "fit plca d.csv --rank 2 --init i.npz -o o.npz",
        1,
        &["i.npz", "5x2", "expected 3x2"],
    ),
    (
        "fit plca d.csv --rank 3 --init i.npz -o o.npz",
        2,
        &["--rank 3", "2 components", "leave --rank out"],
    ),
    (
        "fit plca d.csv --rank 2 --init p.npz -o o.npz",
        1,
        &[
            "p.npz",
            "unknown block `nothing`",
            "expected one of weights",
        ],
    ),
    (
        "fit pntf d.csv --rank 2 --sparsity weights -o o.npz",
        2,
        &["--sparsity: `weights`", "BLOCK=MU"],
    ),
    // Files.
    (
        "fit plca absent.csv --rank 2 -o o.npz",
        1,
        &["absent.csv", "No such file", "paths begin at"],
    ),
    (
        "fit plca d.csv --rank 2 --init absent.npz -o o.npz",
        1,
        &["absent.npz", "No such file", "paths begin at"],
    ),
    (
        "fit plca folder --rank 2 -o o.npz",
        1,
        &["folder: is a folder", "expected a file"],
    ),
    (
        "fit plca d.xyz --rank 2 -o o.npz",
        1,
        &["d.xyz", "known are .npy"],
    ),
    (
        "fit plca text.npy --rank 2 -o o.npz",
        1,
        &["text.npy", "not a .npy file"],
    ),
    (
        "fit plca text.npz --rank 2 -o o.npz",
        1,
        &["text.npz", "not a .npz archive"],
    ),
    (
        "fit plca two.npz --rank 2 -o o.npz",
        1,
        &["two.npz", "arrays, expected one"],
    ),
    (
        "fit plca empty.csv --rank 2 -o o.npz",
        1,
        &["empty.csv", "no numbers"],
    ),
    (
        "fit plca word.csv --rank 2 -o o.npz",
        1,
        &["word.csv: line 2: column 2", "`four` is not a number"],
    ),
    (
        "fit plca ragged.csv --rank 2 -o o.npz",
        1,
        &["ragged.csv: line 2", "1 cells", "2"],
    ),
    (
        "fit plca zero.tns --rank 2 -o o.npz",
        1,
        &["zero.tns: line 1", "below 1"],
    ),
    (
        "fit plca d.tns --rank 2 --shape 2x2 -o o.npz",
        1,
        &["d.tns: line 3", "above 2"],
    ),
    (
        "fit plca d.csv --rank 2 -o o.txt",
        1,
        &["o.txt", "writes .npz or .safetensors"],
    ),
    (
        "fit plca d.csv --rank 2 -o absent/o.npz",
        1,
        &["absent/o.npz", "its folder does not exist"],
    ),
    (
        "fit plca d.csv --rank 2 -o o.npz --trace o.npz",
        2,
        &["--trace o.npz", "the same file as --output"],
    ),
    (
        "fit plca d.csv --rank 2 -o o.npz --resume m.npz",
        1,
        &["m.npz", "of a run wrote"],
    ),
    ("reconstruct m.npz -o a.csv", 1, &["a.csv", "writes .npy"]),
    ("report m.npz -o a.pdf", 1, &["a.pdf", "writes .html"]),
    (
        "transform d.csv d.csv -o n.npz",
        1,
        &["d.csv", "models are .npz or .safetensors"],
    ),
    (
        "inspect d.csv",
        1,
        &["d.csv", "models are .npz or .safetensors"],
    ),
    (
        "inspect m.npz --array c",
        1,
        &["--array c", "expected one of factor_0"],
    ),
    (
        "inspect m.npz --array factor_0 --labels w.txt",
        1,
        &["w.txt", "2 lines", "expected 3, one for each entry"],
    ),
    (
        "report m.npz --labels w.txt -o r.html",
        1,
        &["w.txt", "2 lines", "one line for each row"],
    ),
    (
        "report m.npz --trace w.txt -o r.html",
        1,
        &["w.txt: line 1", "as plca fit --trace writes it"],
    ),
    (
        "spectrogram d.csv -o s.npy",
        1,
        &["d.csv", "not one of .wav, .flac"],
    ),
    (
        "separate k.npz d.csv -o parts",
        1,
        &["k.npz", "`kmeans`", "nmf-kl"],
    ),
    (
        "consensus --from two.npz --rank 2 -o o.npz",
        1,
        &["two.npz", "`spectra`", "needed"],
    ),
    (
        "compare m.npz k.npz",
        1,
        &["m.npz", "fit of plca", "kmeans", "two fits of one model"],
    ),
    ("compare m.npz two.npz", 1, &["two.npz", "`plca fit` wrote"]),
    (
        "refit two.npz -o o.npz",
        1,
        &["two.npz", "`plca fit` wrote"],
    ),
    (
        "sample k.npz --draws 5 -o s.npy",
        1,
        &[
            "k.npz",
            "no distribution to sample from",
            "expected a fit of counts",
        ],
    ),
    // What stands in the data.
    (
        "fit plca nan.csv --rank 2 -o o.npz",
        1,
        &["nan.csv", "[1, 1] is NaN", "--missing nan"],
    ),
    (
        "fit plca negative.csv --rank 2 -o o.npz",
        1,
        &[
            "negative.csv: line 2: column 2",
            "-4",
            "numbers >= 0 are needed",
        ],
    ),
    (
        "fit plca negative.npy --rank 2 -o o.npz",
        1,
        &["negative.npy", "-4", "not a finite number >= 0"],
    ),
    (
        "fit plca zero.csv --rank 2 -o o.npz",
        1,
        &["zero.csv", "no observed entry is positive"],
    ),
    (
        "fit skellam real.csv --rank 2 --replicates 1 -o o.npz",
        1,
        &["real.csv", "[0, 0] is 1.5", "expected a whole number"],
    ),
    (
        "fit plsa cube.npy --rank 2 -o o.npz",
        1,
        &["cube.npy", "needs a matrix", "[3, 3, 3]"],
    ),
    (
        "transform m.npz cube.npy -o n.npz",
        1,
        &["cube.npy", "3 x 3 x 3", "expected 3 x any"],
    ),
    (
        "fit plca scalar.npy --rank 2 -o o.npz",
        1,
        &["scalar.npy", "order 0"],
    ),
    (
        "fit plca d.csv --rank 2 --mask mask.npy -o o.npz",
        1,
        &["mask.npy", "[2, 2]", "[3, 4]"],
    ),
    (
        "fit plca d.csv --rank 2 --missing unstored -o o.npz",
        1,
        &["d.csv", "needs sparse data"],
    ),
    (
        "fit plca d.tns --rank 2 --missing nan -o o.npz",
        1,
        &["d.tns", "needs a dense array"],
    ),
];

#[test]
fn each_says_in_one_line_what_was_expected() {
    let folder = Folder::with_counts();
    for (name, text) in [
        ("nan.csv", "1,2\n3,nan\n"),
        ("negative.csv", "1,2\n3,-4\n"),
        ("word.csv", "1,2\n3,four\n"),
        ("ragged.csv", "1,2\n3\n"),
        ("zero.csv", "0,0\n0,0\n"),
        ("real.csv", "1.5,2\n3,4\n"),
        ("empty.csv", ""),
        ("d.xyz", "1,2\n"),
        ("text.npy", "this is not an array"),
        ("text.npz", "this is not an archive"),
        ("zero.tns", "0 1 3\n"),
        ("d.tns", "1 1 3\n2 2 5\n3 1 2\n"),
        ("w.txt", "sea\nship\n"),
    ] {
        folder.text(name, text);
    }
    folder.npy("cube.npy", &[3, 3, 3], &[1.0; 27]);
    folder.npy("mask.npy", &[2, 2], &[1.0; 4]);
    folder.npy("scalar.npy", &[], &[1.0]);
    folder.npy("negative.npy", &[2, 2], &[1.0, 2.0, 3.0, -4.0]);
    folder.arrays("two.npz", &[("a", &[1], &[1.0]), ("b", &[1], &[1.0])]);
    folder.arrays("i.npz", &[("factor_0", &[5, 2], &[1.0; 10])]);
    folder.arrays("p.npz", &[("nothing", &[3, 2], &[1.0; 6])]);
    std::fs::create_dir(folder.path("folder")).unwrap();
    folder.ok("fit plca d.csv --rank 2 --output m.npz --quiet");
    folder.ok("fit kmeans d.csv --rank 2 --output k.npz --quiet");
    assert!(USES.len() >= 60);
    for &(line, status, parts) in USES {
        folder.fails(status, line, parts);
    }
}

/// An error says where its help is, whatever the value that it is about.
#[test]
fn errors_of_values_name_the_help_of_their_command() {
    let folder = Folder::with_counts();
    for (line, parts) in [
        (
            "fit plca d.csv --rank x --output o.npz",
            &["'x'", "'--rank <K>'", "see plca fit --help"][..],
        ),
        (
            "select plca d.csv --ranks 2 --seed x",
            &["see plca select --help"],
        ),
        (
            "fit nothing d.csv --output o.npz",
            &["'nothing'", "see plca fit --help"],
        ),
        (
            "fit plsa d.csv --rank 2 --shards -1 --output o.npz",
            &["-1", "'--shards <N>'"],
        ),
        (
            "fit plsa d.csv --rank 2 --given -1 --output o.npz",
            &["-1", "'--given <D>'"],
        ),
        (
            "fit tiplca d.csv --rank 2 --kernel 2x2 --rotations -1 --output o.npz",
            &["-1", "'--rotations <N>'"],
        ),
        (
            "shard d.csv --along -1 --output s",
            &["'-1'", "'--samples <D>'", "see plca shard --help"],
        ),
        (
            "shard d.csv --shards -1 --output s",
            &["-1", "'--shards <N>'"],
        ),
        (
            "consensus plca d.csv --ranks 2 --restarts -1 --output o.npz",
            &["-1", "'--restarts <R>'"],
        ),
    ] {
        folder.fails(2, line, parts);
    }
    let value = "1\nUsage: plca elsewhere\n\nFor more information, try this";
    let mut command = folder.program(crate::folder::PROGRAM);
    command.args(["fit", "plca", "d.csv", "--output", "o.npz", "--rank", value]);
    let error = String::from_utf8(command.output().unwrap().stderr).unwrap();
    for part in [
        "a whole number",
        "plca elsewhere",
        "; see plca fit --help\n",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
}
