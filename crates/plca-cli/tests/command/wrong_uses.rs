//! Wrong uses: each ends with one line that says what was expected, and what to do.

use crate::Folder;

/// Exit status, line, and what its error says.
const USES: &str = "
    # The command line.
    2 | fti plca d.csv | 'fti' | fit, transform | see plca --help
    2 | fit plca d.csv --rank 2 --rnak 3 -o o.npz | '--rnak' | '--rank' | see plca fit --help
    2 | fit plca d.csv --rank 2 | --output <FILE> | see plca fit --help
    2 | fit plca --rank 2 -o o.npz | <DATA> | see plca fit --help
    2 | fit d.csv --rank 2 -o o.npz | 'd.csv' | <MODEL> | [possible values: nmf, plca, plsa,
    2 | fit plcaa d.csv --rank 2 -o o.npz | 'plcaa' | a similar value exists: 'plca'
    2 | fit plca d.csv --rank 2 --rank 3 -o o.npz | --rank <K> | multiple times
    2 | fit plca d.csv --rank two -o o.npz | 'two' | --rank <K> | a whole number >= 0 is needed
    2 | fit plca d.csv --rank 0 -o o.npz | --rank 0 | at least one component
    2 | fit plca d.csv -o o.npz | --rank K is required | --init
    2 | fit plca d.csv --rank 2 --tol small -o o.npz | 'small' | --tol <T> | not a number
    2 | fit plca d.csv --rank 2 --tol -1 -o o.npz | '-1' | --tol <T> | a finite number >= 0
    2 | fit plca d.csv --rank 2 --max-iter -5 -o o.npz | '-5' | --max-iter <N> | a whole number >= 0
    2 | fit plca d.csv --rank 2 --seed x -o o.npz | 'x' | --seed <S> | a whole number >= 0
    2 | fit plca d.csv --rank 2 --threads 0 -o o.npz | --threads 0 | at least one thread
    2 | fit plca d.csv --rank 2 --restarts 0 -o o.npz | --restarts 0 | at least one start
    2 | fit plca d.csv --rank 2 --check-every 0 -o o.npz | --check-every 0 | at least 1
    2 | fit plca d.csv --rank 2 --solver newton -o o.npz | 'newton' | --solver <HOW> | em, squarem
    2 | fit plca d.csv --rank 2 --missing zeros -o o.npz | 'zeros' | nan, unstored
    2 | fit plca d.csv --rank 2 --delimiter ;; -o o.npz | ';;' | one ASCII character | tab
    2 | sample m.npz --draws many -o s.npy | 'many' | --draws <N> | a whole number >= 0
    2 | select plca d.csv | --ranks <A..B> | see plca select --help
    2 | select plca d.csv --ranks 5..2 | --ranks 5..2 | A..B or A,B,C | A <= B
    2 | inspect m.npz --labels w.txt | --array <NAME> | see plca inspect --help
    2 | man fti | fti | expected one of fit, transform
    2 | completions csh | 'csh' | bash
    # Options that the model does not have, and pairs that do not go together.
    2 | fit plca d.csv --rank 2 --kernel 2x2 -o o.npz | plca has no option --kernel | plca fit plca --help
    2 | fit nmf-kl d.csv --rank 2 --temper .5 -o o.npz | nmf-kl has no option --temper | plca fit nmf-kl --help
    2 | fit siplca d.csv --rank 2 --kernel 2x2 --solver fast -o o.npz | siplca has no --solver fast | use --solver em
    2 | fit plca d.csv --rank 2 --accelerate squarem --solver fast -o o.npz | --accelerate cannot be combined with --solver fast | use --solver em
    2 | fit nmf-kl d.csv --rank 2 --update simultaneous --missing-method multiplicative -o o.npz | multiplicative | the sequential form
    2 | fit plca d.csv --rank 2 --temper 1.5 -o o.npz | --temper | 1.5 | a power in (0, 1]
    2 | fit plca d.csv --rank 2 --temper-prior -o o.npz | --temper-prior needs --temper B
    2 | fit plca d.csv --rank 2 --kkt-tol 1e-3 --tol 0 -o o.npz | --kkt-tol cannot be combined with --tol 0
    2 | fit plca d.csv --rank 2 --checkpoint c.npz -o o.npz | --checkpoint-every <N>
    2 | fit plca d.csv --rank 2 --passes 3 -o o.npz | --online <KAPPA,T0>
    2 | fit plca d.csv --rank 2 --online 3 -o o.npz | '3' | KAPPA,T0, average or constant:RHO
    2 | fit plca d.csv d.csv --rank 2 -o o.npz | several files | --online
    2 | fit plca d.tns --rank 2 -o o.npz --out-of-core s.store --mask mask.npy | --mask cannot be combined with --out-of-core
    2 | fit tiplca d.csv --rank 2 --kernel 2x2 --angles a,b -o o.npz | 'a' | --angles | not a number
    2 | fit tiplca d.csv --rank 2 --kernel 2x2 --rotations 4 --angles 10,20 -o o.npz | --rotations | cannot be used with | --angles
    2 | select kmeans d.csv --ranks 2..3 | kmeans has no table of scores | expected one of plca
    2 | select plca d.csv --ranks 2..3 --criterion elbo | elbo | bic, aic, held-out
    2 | consensus skellam d.csv --ranks 2 -o o.npz | skellam has no consensus | expected one of plca
    # Kernels and dimensions.
    2 | fit siplca d.csv --rank 2 -o o.npz | --kernel is needed | --init
    2 | fit siplca d.csv --rank 2 --kernel 2 -o o.npz | --kernel | [3, 4] | expected 2, one for each dimension
    1 | fit siplca d.csv --rank 2 --kernel 9x9 -o o.npz | d.csv | 3 x 4 | expected at least 9 x at least 9
    2 | fit siplca d.csv --rank 2 --kernel 0x2 -o o.npz | kernel | expected extents of at least 1
    2 | fit siplca d.csv --rank 2 --kernel axb -o o.npz | 'axb' | `a` is not a whole number
    2 | fit siplca d.csv --rank 2 --kernel 2x2 --support inside -o o.npz | 'inside' | valid, same, full
    2 | fit siplca d.csv --rank 2 --kernel 2x2 --support valid,same,full -o o.npz | 3 supports | expected one for all dimensions
    2 | fit siplca d.csv --rank 2 --kernel 2x2 --anneal 3 -o o.npz | '3' | ALPHA0,T is needed
    2 | fit siplca d.csv --rank 2 --kernel 2x2 --anneal 3,10 -o o.npz | anneal | expected a first power in (0, 1]
    2 | fit plsa d.csv --rank 2 --given 2 -o o.npz | '2' | --given <D> | 0..=1
    2 | fit skellam d.csv --rank 2 --replicates 0 -o o.npz | '0' | a whole number >= 1 nor inf
    2 | fit skellam-cp d.csv --rank 2 --signed-mode 7 -o o.npz | 7
    2 | transform m.npz d.csv --along 7 -o n.npz | --along 7 | along dimension 0 or 1
    2 | fit kmeans d.csv --rank 2 --seeding best -o o.npz | 'best' | plus-plus, random
    1 | fit kmeans d.csv --rank 9 -o o.npz | d.csv | 4 columns | expected a rank of at most 4
    # Blocks and priors.
    2 | fit plca d.csv --rank 2 --freeze factor_0 -o o.npz | --freeze factor_0 | --init FILE
    2 | fit plca d.csv --rank 2 --freeze w -o o.npz | --freeze w | expected one of weights, factor_0
    2 | fit plca d.csv --rank 2 --freeze-entries i.npz -o o.npz | --init <FILE>
    2 | fit plca d.csv --rank 2 --prior weights -o o.npz | --prior weights | BLOCK=SPEC is needed | weights=dirichlet:2
    2 | fit plca d.csv --rank 2 --prior weights=beta:1 -o o.npz | beta:1 | expected one of dirichlet:A
    2 | fit plca d.csv --rank 2 --prior w=dirichlet:1 -o o.npz | `w` | expected one of factor_0
    2 | fit plca d.csv --rank 2 --prior weights=dirichlet:-1 -o o.npz | alpha | -1
    1 | fit plca d.csv --rank 2 --priors p.npz -o o.npz | p.npz | BLOCK.KIND is needed | weights.dirichlet
    1 | fit plca d.csv --rank 2 --init i.npz -o o.npz | i.npz | 5x2 | expected 3x2
    2 | fit plca d.csv --rank 3 --init i.npz -o o.npz | --rank 3 | 2 components | leave --rank out
    1 | fit plca d.csv --rank 2 --init p.npz -o o.npz | p.npz | unknown block `nothing` | expected one of weights
    2 | fit pntf d.csv --rank 2 --sparsity weights -o o.npz | --sparsity: `weights` | BLOCK=MU
    # Files.
    1 | fit plca absent.csv --rank 2 -o o.npz | absent.csv | No such file | paths begin at
    1 | fit plca d.csv --rank 2 --init absent.npz -o o.npz | absent.npz | No such file | paths begin at
    1 | fit plca folder --rank 2 -o o.npz | folder: is a folder | expected a file
    1 | fit plca d.xyz --rank 2 -o o.npz | d.xyz | known are .npy
    1 | fit plca text.npy --rank 2 -o o.npz | text.npy | not a .npy file
    1 | fit plca text.npz --rank 2 -o o.npz | text.npz | not a .npz archive
    1 | fit plca two.npz --rank 2 -o o.npz | two.npz | arrays, expected one
    1 | fit plca empty.csv --rank 2 -o o.npz | empty.csv | no numbers
    1 | fit plca word.csv --rank 2 -o o.npz | word.csv: line 2: column 2 | `four` is not a number
    1 | fit plca ragged.csv --rank 2 -o o.npz | ragged.csv: line 2 | 1 cells | 2
    1 | fit plca zero.tns --rank 2 -o o.npz | zero.tns: line 1 | below 1
    1 | fit plca d.tns --rank 2 --shape 2x2 -o o.npz | d.tns: line 3 | above 2
    1 | fit plca d.csv --rank 2 -o o.txt | o.txt | writes .npz or .safetensors
    1 | fit plca d.csv --rank 2 -o absent/o.npz | absent/o.npz | its folder does not exist
    2 | fit plca d.csv --rank 2 -o o.npz --trace o.npz | --trace o.npz | the same file as --output
    1 | fit plca d.csv --rank 2 -o o.npz --resume m.npz | m.npz | of a run wrote
    1 | reconstruct m.npz -o a.csv | a.csv | writes .npy
    1 | report m.npz -o a.pdf | a.pdf | writes .html
    1 | transform d.csv d.csv -o n.npz | d.csv | models are .npz or .safetensors
    1 | inspect d.csv | d.csv | models are .npz or .safetensors
    1 | inspect m.npz --array c | --array c | expected one of factor_0
    1 | inspect m.npz --array factor_0 --labels w.txt | w.txt | 2 lines | expected 3, one for each entry
    1 | report m.npz --labels w.txt -o r.html | w.txt | 2 lines | one line for each row
    1 | report m.npz --trace w.txt -o r.html | w.txt: line 1 | as plca fit --trace writes it
    1 | spectrogram d.csv -o s.npy | d.csv | not one of .wav, .flac
    1 | separate k.npz d.csv -o parts | k.npz | `kmeans` | nmf-kl
    1 | consensus --from two.npz --rank 2 -o o.npz | two.npz | `spectra` | needed
    1 | compare m.npz k.npz | m.npz | fit of plca | kmeans | two fits of one model
    1 | compare m.npz two.npz | two.npz | `plca fit` wrote
    1 | refit two.npz -o o.npz | two.npz | `plca fit` wrote
    1 | sample k.npz --draws 5 -o s.npy | k.npz | no distribution to sample from | expected a fit of counts
    # What stands in the data.
    1 | fit plca nan.csv --rank 2 -o o.npz | nan.csv | [1, 1] is NaN | --missing nan
    1 | fit plca negative.csv --rank 2 -o o.npz | negative.csv: line 2: column 2 | -4 | numbers >= 0 are needed
    1 | fit plca negative.npy --rank 2 -o o.npz | negative.npy | -4 | not a finite number >= 0
    1 | fit plca zero.csv --rank 2 -o o.npz | zero.csv | no observed entry is positive
    1 | fit skellam real.csv --rank 2 --replicates 1 -o o.npz | real.csv | [0, 0] is 1.5 | expected a whole number
    1 | fit plsa cube.npy --rank 2 -o o.npz | cube.npy | needs a matrix | [3, 3, 3]
    1 | transform m.npz cube.npy -o n.npz | cube.npy | 3 x 3 x 3 | expected 3 x any
    1 | fit plca scalar.npy --rank 2 -o o.npz | scalar.npy | order 0
    1 | fit plca d.csv --rank 2 --mask mask.npy -o o.npz | mask.npy | [2, 2] | [3, 4]
    1 | fit plca d.csv --rank 2 --missing unstored -o o.npz | d.csv | needs sparse data
    1 | fit plca d.tns --rank 2 --missing nan -o o.npz | d.tns | needs a dense array
";

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
    folder.refuses(USES);
}

/// An error says where its help is, whatever the value that it is about.
#[test]
fn errors_of_values_name_the_help_of_their_command() {
    let folder = Folder::with_counts();
    folder.refuses("
        2 | fit plca d.csv --rank x --output o.npz | 'x' | '--rank <K>' | see plca fit --help
        2 | select plca d.csv --ranks 2 --seed x | see plca select --help
        2 | fit nothing d.csv --output o.npz | 'nothing' | see plca fit --help
        2 | fit plsa d.csv --rank 2 --shards -1 --output o.npz | -1 | '--shards <N>'
        2 | fit plsa d.csv --rank 2 --given -1 --output o.npz | -1 | '--given <D>'
        2 | fit tiplca d.csv --rank 2 --kernel 2x2 --rotations -1 --output o.npz | -1 | '--rotations <N>'
        2 | shard d.csv --along -1 --output s | '-1' | '--samples <D>' | see plca shard --help
        2 | shard d.csv --shards -1 --output s | -1 | '--shards <N>'
        2 | consensus plca d.csv --ranks 2 --restarts -1 --output o.npz | -1 | '--restarts <R>'
    ");
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
