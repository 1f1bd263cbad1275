//! Tables and lists as other programs write them: read right, or refused with what helps.

use std::io::Write;

use serde_json::json;

use super::folder::Folder;

fn told(folder: &Folder, line: &str) -> String {
    let out = folder.run(line);
    let err = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(0), "{line}: {err}");
    err
}

/// The shape of the data, and the names along dimension 0, of a fit.
fn names(folder: &Folder, data: &str) -> (serde_json::Value, serde_json::Value) {
    folder.ok(&format!(
        "fit plca {data} --rank 1 --output names.npz --quiet"
    ));
    let model = folder.model("names.npz").metadata;
    (model["data"]["shape"].clone(), model["names"]["0"].clone())
}

/// Does with a table what a refusal says, and says with which options it is read then.
fn follow(folder: &Folder, file: &str, refusal: &str, options: &str) -> String {
    let text = String::from_utf8(folder.bytes(file)).unwrap();
    let (_, advice) = refusal.rsplit_once("; it can be read ").expect(refusal);
    let (without, with) = match advice.trim().strip_prefix("without ") {
        Some(rest) => rest.split_once(" and with ").unwrap_or((rest, "")),
        None => ("", advice.trim().strip_prefix("with ").unwrap()),
    };
    let given = options.split_once("--delimiter ");
    let given = given.and_then(|(_, rest)| rest.chars().next());
    let mut options = options.to_string();
    let mut set = |option: &str, value: &str| {
        let words: Vec<&str> = options.split_whitespace().collect();
        let at = words.iter().position(|word| *word == option);
        let kept: Vec<&str> = (words.iter().enumerate())
            .filter(|&(i, _)| at.is_none_or(|at| i != at && i != at + 1))
            .map(|(_, &word)| word)
            .collect();
        options = format!("{} {option} {value}", kept.join(" "));
    };
    let (mut column, mut first, mut points) = (None, 0, false);
    for part in without.split(" and ").filter(|part| !part.is_empty()) {
        match part.split_once(' ').unwrap() {
            ("line", "1") => first = 1,
            ("column", number) => column = Some(number.parse::<usize>().unwrap() - 1),
            _ => panic!("{advice}"),
        }
    }
    let mut delimiter = given.unwrap_or(if file.ends_with("tsv") { '\t' } else { ',' });
    for part in with.split(" and ").filter(|part| !part.is_empty()) {
        match part {
            "--delimiter tab" => (delimiter, _) = ('\t', set("--delimiter", "tab")),
            // A blank is no word of these lines.
            "--delimiter ' '" => (delimiter, _) = (' ', ()),
            "--labels first-column (names of rows)" => set("--labels", "first-column"),
            "--labels entries (names, then a value, in every line)" => set("--labels", "entries"),
            "a decimal point in place of the comma in numbers" => points = true,
            part => match part.strip_prefix("--delimiter ") {
                Some(c) => {
                    (delimiter, _) = (
                        c.chars().nth(1).unwrap(),
                        set("--delimiter", c.trim_matches('\'')),
                    )
                }
                None => {
                    let (option, value) = part.split_once(' ').unwrap();
                    set(option, value);
                }
            },
        }
    }
    let lines = text.lines().skip(first).map(|line| {
        let cells = line.split(delimiter).enumerate();
        let kept = cells.filter(|&(at, _)| column != Some(at));
        let kept: Vec<String> = kept
            .map(|(_, cell)| {
                if points {
                    cell.replace(',', ".")
                } else {
                    cell.to_string()
                }
            })
            .collect();
        kept.join(&delimiter.to_string()) + "\n"
    });
    folder.text(file, &lines.collect::<String>());
    match delimiter {
        ' ' => format!("{options} --delimiter=\u{20}"),
        _ => options,
    }
}

/// Every hint leads to a command that works: it is followed here.
#[test]
fn hints_lead_to_commands_that_work() {
    let folder = Folder::new();
    #[rustfmt::skip]
    let cases = [
        ("mixed.tsv", "Type\tP1\t1002\t1003\t1004\nA\t5\t0\t1\t0\nB\t3\t2\t0\t0\n", "--labels first-column", "with --header yes"),
        (
            "biom.tsv",
            "# Constructed from biom file\n#OTU ID\tA\tB\ttaxonomy\nO1\t5.0\t1.0\tk__Bacteria; p__X\nO2\t3.0\t0.0\tk__Bacteria; p__Y\n",
            "--labels first-column",
            "without line 1 and column 4",
        ),
        ("headed.tsv", "# made today\n#OTU ID\tA\tB\nO1\t5.0\t1.0\nO2\t3.0\t0.0\n", "", "without line 1 and with --labels first-column"),
        ("blank.csv", "1.0e+00 2.0e+00\n3.0e+00 4.0e+00\n", "", "with --delimiter ' '"),
        ("blank.csv", "1.0e+00 2.0e+00\n3.0e+00 4.0e+00\n", "--header no", "with --delimiter ' '"),
        ("semicolons.csv", "a;1;2\nb;3;4\n", "", "with --delimiter ';' and --labels first-column"),
        ("semicolons.csv", "a;1;2\nb;3;4\n", "--labels first-column", "with --delimiter ';'"),
        ("bars.csv", "1|2\n3|4\n", "", "with --delimiter '|'"),
        ("tabs.csv", "gene\tone\ttwo\na\t1\t2\nb\t3\t4\n", "", "with --delimiter tab and --labels first-column"),
        ("commas.tsv", "gene,one,two\na,1,2\nb,3,4\n", "", "with --delimiter ',' and --labels first-column"),
        (
            "decimal.csv",
            "gene;one;two\na;1,5;2\nb;3;4,25\n",
            "--labels first-column",
            "with --delimiter ';' and a decimal point in place of the comma in numbers",
        ),
        ("decimal.csv", "1,5;2\n3;4,25\n", "--delimiter ;", "with a decimal point in place of the comma in numbers"),
        ("two.csv", "Type,Tri,S1,S2\nC>A,ACA,5,3\nC>A,ACC,2,8\n", "--labels first-column", "without column 2"),
        ("long.csv", "doc,word,count\na,sea,1\nb,sun,2\n", "", "with --labels entries"),
        ("long.csv", "doc,word,count\na,sea,1\nb,sun,2\n", "--labels first-column", "with --labels entries"),
        ("wrong.csv", "gene,one,two\na,1,2\nb,3,4\n", "--delimiter ;", "with --delimiter ','"),
        ("no.csv", "gene,one,two\na,1,2\nb,3,4\n", "--labels first-column --header no", "with no --header"),
    ];
    for (file, text, options, hint) in cases {
        folder.text(file, text);
        let line =
            |options: &str| format!("fit plca {file} {options} --rank 1 --output o.npz --quiet");
        let out = folder.run(&line(options));
        let refusal = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(1), "{file} {options}: {refusal}");
        assert!(
            refusal.contains(&format!("; it can be read {hint}")),
            "{file} {options}: {refusal}"
        );
        let hint = hint.replace("no --header", "--header auto");
        let refusal = refusal.replace("no --header", "--header auto");
        let options = follow(&folder, file, &refusal, options);
        let mut command = folder.program(env!("CARGO_BIN_EXE_plca"));
        let words = line(&options);
        let words = words.split_whitespace().map(|word| match word {
            "--delimiter=" => "--delimiter= ",
            word => word,
        });
        let out = command.args(words).output().unwrap();
        let err = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(0), "{file}, {hint}: {err}");
    }
    // The same with other ends of lines.
    folder.text("cr.csv", "# made today\r1;2\r3;4\r");
    folder.refuses("1 | fit plca cr.csv --rank 1 --output o.npz | can be read without line 1 and with --delimiter ';'");
    // Nothing helps a wrong number, or two blanks.
    for text in [
        "1  2  3\n4  5  6\n",
        "1,2\n3,four\n",
        "1,2\n3,x\n4,5\n",
        "1,2,3\n4,5\n",
    ] {
        folder.text("v.csv", text);
        let out = folder.run("fit plca v.csv --rank 1 --output o.npz");
        let err = String::from_utf8(out.stderr).unwrap();
        assert!(
            out.status.code() == Some(1) && !err.contains("can be read"),
            "{err}"
        );
    }
}

/// Numbers in the first line that look like names are warned of wherever data are read.
#[test]
fn names_that_are_numbers_are_warned_of() {
    let folder = Folder::new();
    folder.text(
        "v.csv",
        "species,1023,877,9981,455\nabies,5,0,1,0\nacer,3,2,0,0\nbetula,0,4,6,1\nfagus,1,0,2,7\n",
    );
    folder.text(
        "quoted.csv",
        "species,\"1023\",\"877\"\nabies,5,0\nacer,3,2\nfagus,1,4\n",
    );
    folder.text("pandas.csv", "0,1,2,3\n5,0,1,0\n3,2,0,2\n");
    folder.text("one.csv", "1,2,3\n5,1,1\n3,2,4\n");
    folder.text("data.csv", "abies,5,0,5,0\nacer,3,2,0,0\n");
    let lines = [
        "fit plsa DATA --rank 1 --output o.npz",
        "select plsa DATA --ranks 1..2 --criterion bic",
        "select nmf-kl DATA --ranks 1..2",
        "consensus nmf-kl DATA --ranks 1 --restarts 8 --output c.npz",
    ];
    for data in [
        "v.csv --labels first-column",
        "quoted.csv --labels first-column",
        "pandas.csv",
        "one.csv",
    ] {
        for line in lines {
            let line = line.replace("DATA", data);
            assert!(told(&folder, &line).contains("--header yes"), "{line}");
            let line = format!("{line} --header yes");
            assert!(!told(&folder, &line).contains("--header"), "{line}");
        }
    }
    assert!(
        !told(
            &folder,
            "fit plsa data.csv --labels first-column --rank 1 --output o.npz"
        )
        .contains("--header")
    );
    folder.ok("fit plsa v.csv --labels first-column --header yes --rank 1 --output o.npz --quiet");
    assert!(
        told(
            &folder,
            "transform o.npz v.csv --labels first-column --header no --output t.npz"
        )
        .contains("species")
    );
}

/// Between tabs a quote is text; elsewhere it must not swallow lines.
#[test]
fn quotes_that_are_text_lose_no_lines() {
    let folder = Folder::new();
    folder.text(
        "entries.tsv",
        "\"\td1\t3\na\td1\t1\nb\td2\t4\n\"\td2\t2\na\td2\t1\n",
    );
    assert_eq!(
        names(&folder, "entries.tsv --labels entries"),
        (json!([3, 2]), json!(["\"", "a", "b"]))
    );
    assert_eq!(folder.model("names.npz").metadata["data"]["total"], 11.0);
    folder.text("table.tsv", "gene\ts1\ts2\n\"5S rRNA\t3\t2\nb\t1\t1\nc\t2\t2\nd\"\t1\t4\n\"e f\"\t1\t1\n\"g\"\"h\"\t1\t1\n");
    let rows = json!(["\"5S rRNA", "b", "c", "d\"", "e f", "g\"h"]);
    assert_eq!(
        names(&folder, "table.tsv --labels first-column"),
        (json!([6, 2]), rows)
    );
    for name in ["text.csv", "text.tsv"] {
        folder.text(name, "\",d1,3\na,d1,1\nb,d2,4\n\",d2,2\na,d2,1\n");
        let line =
            format!("fit plca {name} --labels entries --delimiter , --rank 1 --output o.npz");
        folder.fails(1, &line, &["line 4", "line 1", "quote"]);
    }
    // A name may have several lines.
    folder.text("lines.csv", "\"a, \nb\",d1,3\nc,d1,1\n");
    assert_eq!(
        names(&folder, "lines.csv --labels entries").0,
        json!([2, 1])
    );
}

/// Ends of lines, marks and comments of other systems.
#[test]
fn lines_and_comments_of_every_kind() {
    let folder = Folder::new();
    let entries = "1 1 1 2\n2 3 1 4\n3 1 2 1.5\n";
    for (text, name) in [
        (entries.replace('\n', "\r"), "cr.tns"),
        (entries.replace('\n', "\r\n"), "crlf.tns"),
        (entries.replace("2\n", "2 # of two\n"), "comment.tns"),
        (format!("\u{feff}# begin\r{entries}"), "mark.tns"),
    ] {
        folder.text(name, &text);
        assert_eq!(names(&folder, name).0, json!([3, 3, 2]), "{name}");
        assert_eq!(
            folder.model("names.npz").metadata["data"]["total"],
            7.5,
            "{name}"
        );
    }
    #[rustfmt::skip]
    let cases = [
        ("gene,a,b\rx,1,2\ry,3,4\r", "cr.csv", "--labels first-column"),
        ("sep=;\r\ngene;a;b\r\nx;1;2\r\ny;3;4\r\n", "sep.csv", "--labels first-column"),
        ("sep=;\ngene;a;b\nx;1;2\ny;3;4\n", "sep.csv", "--labels first-column --delimiter ;"),
        ("\"sep=\t\"\ngene\ta\tb\nx\t1\t2\ny\t3\t4\n", "tab.csv", "--labels first-column"),
    ];
    for (text, name, options) in cases {
        folder.text(name, text);
        assert_eq!(
            names(&folder, &format!("{name} {options}")),
            (json!([2, 2]), json!(["x", "y"])),
            "{name}"
        );
    }
}

#[test]
fn missing_values_of_other_programs() {
    let folder = Folder::new();
    folder.text("empty.csv", "gene,a,b\nx,1,\ny,3,4\n");
    folder.ok("fit nmf-kl empty.csv --labels first-column --missing nan --rank 1 --output empty.npz --quiet");
    for word in ["NA", "N/A", "null", "None", "-", "nan", "\"NA\""] {
        folder.text("v.csv", &format!("gene,a,b\nx,1,{word}\ny,3,4\n"));
        let line = "fit nmf-kl v.csv --labels first-column --rank 1 --output v.npz --quiet";
        folder.ok(&format!("{line} --missing nan"));
        assert_eq!(
            folder.model("v.npz").arrays,
            folder.model("empty.npz").arrays,
            "{word}"
        );
        folder.fails(1, line, &["[0, 1] is NaN", "--missing nan"]);
    }
}

#[test]
fn lists_of_samples_and_of_entries() {
    let folder = Folder::new();
    folder.text("v.svmlight", "1,2 3:1 5:2\n 4:1\n0 2:3\n");
    folder.ok("fit plsa v.svmlight --given 0 --rank 1 --output o.npz --quiet");
    let model = folder.model("o.npz").metadata;
    assert_eq!(
        (&model["data"]["shape"], &model["data"]["total"]),
        (&json!([3, 5]), &json!(7.0))
    );
    // As scikit-learn writes it, of a matrix whose first column is empty.
    folder.text("zero.svmlight", "# Generated by dump_svmlight_file from scikit-learn 1.9.1\n# Column indices are zero-based\n1 1:5 2:1\n0 1:2\n");
    folder.ok("fit plsa zero.svmlight --given 0 --rank 1 --output o.npz --quiet");
    assert_eq!(
        folder.model("o.npz").metadata["data"]["shape"],
        json!([2, 3])
    );
    for field in ["unsigned-integer", "integer", "real"] {
        folder.text(
            "v.mtx",
            &format!(
                "%%MatrixMarket matrix coordinate {field} general\n2 2 3\n1 1 5\n2 2 3\n1 2 1\n"
            ),
        );
        folder.ok("fit plsa v.mtx --rank 1 --output o.npz --quiet");
        folder.ok("fit plsa v.mtx --rank 1 --output p.npz --quiet --out-of-core v.store");
        assert_eq!(folder.model("o.npz").metadata["data"]["total"], 9.0);
        assert_eq!(folder.model("o.npz").arrays, folder.model("p.npz").arrays);
    }
}

/// The last cell of an entry is its value, which may not be what was meant.
#[test]
fn columns_that_are_no_values_are_told() {
    let folder = Folder::new();
    folder.text(
        "ratings.csv",
        "user,movie,rating,timestamp\n1,10,4,881250949\n1,20,3,891717742\n2,10,5,878887116\n",
    );
    folder.refuses("1 | fit nmf-kl ratings.csv --labels entries --missing unstored --rank 1 --output o.npz | [2, 2, 3] | last cell of every line is its value");
    let said = told(
        &folder,
        "fit plca ratings.csv --labels entries --rank 1 --output o.npz",
    );
    assert!(said.contains("look like times"), "{said}");
    folder.text(
        "u.tsv",
        "196\t242\t3\t881250949\n186\t302\t3\t891717742\n22\t377\t1\t878887116\n",
    );
    assert!(
        told(
            &folder,
            "fit plca u.tsv --labels entries --rank 1 --output o.npz"
        )
        .contains("look like times")
    );
    folder.text("pairs.csv", "user,item\n1,10\n1,20\n2,10\n3,30\n");
    let said = told(
        &folder,
        "fit plca pairs.csv --labels entries --rank 1 --output o.npz",
    );
    assert!(
        said.contains("`item`") && said.contains("column of ones"),
        "{said}"
    );
    folder.text("fine.csv", "user,item,rating\n1,10,4\n1,20,3\n2,10,5\n");
    assert_eq!(
        told(
            &folder,
            "fit plca fine.csv --labels entries --rank 1 --output o.npz"
        ),
        ""
    );
}

/// Options that would do nothing are refused.
#[test]
fn options_of_other_formats_are_refused() {
    let folder = Folder::with_counts();
    folder.npy("v.npy", &[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    folder.text(
        "v.mtx",
        "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 5\n2 2 3\n",
    );
    folder.text("v.svmlight", "1 1:5 2:1\n");
    for data in ["v.npy", "v.mtx", "v.svmlight"] {
        folder.refuses(&format!("
            1 | fit plca {data} --header yes --rank 1 --output o.npz | {data} | .csv and .tsv
            1 | select plca {data} --header yes --ranks 1..2 | {data} | .csv and .tsv
            1 | fit plca {data} --header no --rank 1 --output o.npz | {data} | .csv and .tsv
            1 | select plca {data} --header no --ranks 1..2 | {data} | .csv and .tsv
            1 | fit plca {data} --delimiter ; --rank 1 --output o.npz | {data} | .csv and .tsv
            1 | select plca {data} --delimiter ; --ranks 1..2 | {data} | .csv and .tsv
            1 | fit plca {data} --labels first-column --rank 1 --output o.npz | {data} | .csv and .tsv
            1 | select plca {data} --labels first-column --ranks 1..2 | {data} | .csv and .tsv
            1 | fit plca {data} --labels entries --rank 1 --output o.npz | {data} | .csv and .tsv
            1 | select plca {data} --labels entries --ranks 1..2 | {data} | .csv and .tsv
        "));
    }
    folder.refuses(
        "
            1 | fit plca v.npy --first-index 0 --rank 1 --output o.npz | v.npy | .svmlight
            1 | fit plca v.mtx --first-index 0 --rank 1 --output o.npz | v.mtx | .svmlight
            1 | fit plca d.csv --first-index 0 --rank 1 --output o.npz | d.csv | .svmlight
        ",
    );
}

/// Lists of names may be packed, marked and have more columns.
#[test]
fn lists_of_names_of_every_kind() {
    let folder = Folder::new();
    folder.npy("v.npy", &[3, 2], &[1.0, 2.0, 3.0, 4.0, 0.0, 1.0]);
    folder.text("plain.txt", "church\npope\nsea\n");
    folder.text("mark.txt", "\u{feff}church\r\npope\r\nsea\r\n");
    folder.text("cr.txt", "church\rpope\rsea\r");
    folder.text(
        "features.tsv",
        "church\tC1\tGene Expression\npope\tP1\tGene Expression\nsea\tS1\tGene Expression\n",
    );
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&folder.bytes("features.tsv")).unwrap();
    std::fs::write(folder.path("features.tsv.gz"), packed.finish().unwrap()).unwrap();
    for list in [
        "plain.txt",
        "mark.txt",
        "cr.txt",
        "features.tsv",
        "features.tsv.gz",
    ] {
        assert_eq!(
            names(&folder, &format!("v.npy --labels {list}")).1,
            json!(["church", "pope", "sea"]),
            "{list}"
        );
        let line = format!("inspect names.npz --array factor_0 --labels {list}");
        assert_eq!(
            folder.json(&line)["components"][0][0]["label"],
            "pope",
            "{list}"
        );
    }
    folder.refuses("1 | fit plca v.npy --rank 1 --output o.npz --labels v.npy | v.npy | UTF-8");
}

/// Components that are known keep their names from a table through fits and transforms to what is written.
#[test]
fn known_components_keep_their_names() {
    let folder = Folder::new();
    folder.text(
        "catalogue.tsv",
        "Type\tT1\tT2\tT3\nA\t50\t10\t24\nC\t30\t20\t20\nG\t20\t70\t41\n",
    );
    folder.text(
        "signatures.tsv",
        "Type\tSBS1\tSBS2\nC\t0.3\t0.2\nA\t0.5\t0.1\nG\t0.2\t0.7\n",
    );
    let header = |model: &str, array: &str| {
        folder.ok(&format!("export {model} --array {array} --output x.csv"));
        let text = String::from_utf8(folder.bytes("x.csv")).unwrap();
        text.lines().next().unwrap().to_string()
    };
    let fit = "fit nmf-kl catalogue.tsv --labels first-column --quiet";
    folder.ok(&format!(
        "{fit} --init signatures.tsv --freeze w --output known.npz"
    ));
    assert_eq!(header("known.npz", "h"), "name,SBS1,SBS2");
    assert_eq!(header("known.npz", "w"), "name,SBS1,SBS2");
    folder.ok("transform known.npz catalogue.tsv --labels first-column --output t.npz --quiet");
    assert_eq!(header("t.npz", "h"), "name,SBS1,SBS2");
    folder.ok("refit known.npz --output again.npz --quiet");
    assert_eq!(header("again.npz", "h"), "name,SBS1,SBS2");
    folder.ok(&format!(
        "{fit} --init known.npz --freeze w --output more.npz"
    ));
    assert_eq!(header("more.npz", "h"), "name,SBS1,SBS2");
    let said = folder.ok("inspect known.npz --array w --top 1");
    assert!(said.starts_with("0 SBS1  A 0.5"), "{said}");
    folder.ok("report known.npz --output r.html");
    assert!(
        String::from_utf8(folder.bytes("r.html"))
            .unwrap()
            .contains("SBS2")
    );
    // What is learnt has no name.
    folder.ok(&format!(
        "{fit} --init signatures.tsv --freeze w:1 --output half.npz"
    ));
    assert_eq!(header("half.npz", "h"), "name,component_0,SBS2");
    folder.ok(&format!("{fit} --init known.npz --output free.npz"));
    assert_eq!(header("free.npz", "h"), "name,component_0,component_1");
}

/// Metadata that are no object have no members.
#[test]
fn metadata_of_others_may_be_anything() {
    let folder = Folder::with_counts();
    for metadata in ["[]", "3", "\"text\"", "null"] {
        let model = plca_io::ModelFile {
            metadata: serde_json::from_str(metadata).unwrap(),
            arrays: [(
                "w".to_string(),
                plca_io::Array::new(vec![3, 2], vec![1.0, 2.0, 3.0, 1.0, 1.0, 4.0]),
            )]
            .into(),
        };
        plca_io::write_model(folder.path("init.npz"), &model, false).unwrap();
        folder.ok("fit nmf-kl d.csv --init init.npz --freeze w --output o.npz --quiet");
        folder.ok("fit nmf-kl init.npz --rank 1 --output p.npz --quiet");
        folder.ok("transform p.npz init.npz --output t.npz --quiet");
    }
}

/// Sodium is no missing value where it names the only column; a name of two lines is no line of the table; shards keep no names, and say so.
#[test]
fn names_that_look_like_something_else() {
    let folder = Folder::new();
    folder.text("one.csv", "Na\n3\n1\n2\n");
    folder.ok("fit nmf-kl one.csv -k 1 --output m.npz --quiet");
    assert_eq!(folder.model("m.npz").arrays["w"].shape, [3, 1]);
    folder.text("two.csv", "\"size\nsmall, large\",weight\n1,2\n3,5\n");
    folder.ok("fit nmf-kl two.csv -k 1 --output m.npz --quiet");
    assert_eq!(folder.model("m.npz").arrays["w"].shape, [2, 1]);
    // Lines of numbers between two quotes are still refused.
    folder.text("open.csv", "\"size,weight\n1,2\n3,5\n\",2\n");
    folder.fails(1, "fit nmf-kl open.csv -k 1 --output m.npz", &["quote"]);
    folder.text("named.csv", "word,d1,d2\napple,1,2\npear,0,3\n");
    folder.refuses("1 | shard named.csv --output s --shards 2 | named.csv | shards keep no names");
}

/// What a message proposes never makes names of data, or data of names, and never leaves out a line or a column that was not refused.
#[test]
fn hints_lose_nothing() {
    let folder = Folder::new();
    let refused = |file: &str, text: &str, options: &str| -> String {
        folder.text(file, text);
        let out = folder.run(&format!(
            "fit nmf-kl {file} {options} --rank 1 --output m.npz"
        ));
        let err = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(1), "{file}: {err}");
        err
    };
    // The cell is wrong, however the table is read.
    for cell in ["-1", "inf", "<5", "n.d.", "\"1,234\"", "1_000", "1 234"] {
        let text = format!("gene,s1,s2\ng1,{cell},2\ng2,3,4\ng3,5,6\n");
        let err = refused("a.csv", &text, "--labels first-column");
        assert!(err.contains("line 2: column 2"), "{err}");
        assert!(!err.contains("it can be read"), "{err}");
    }
    for text in [
        "word,doc,count\nsea,,3\nsea,d2,2\nsun,d2,5\n",
        "word,doc,count\nsea,d1,x\nsea,d2,2\nsun,d2,5\n",
        "word,doc,count\nsea,d1,3\nsea,d2,\nsun,d2,4\n",
        "word,doc,count\nsea,d2,2\nsea,,3\n",
    ] {
        let err = refused("e.csv", text, "--labels entries");
        assert!(!err.contains("it can be read"), "{err}");
    }
    let empty = refused(
        "e.csv",
        "word,doc,count\nsea,d1,3\nsea,d2,\nsun,d2,4\n",
        "--labels entries",
    );
    assert!(
        empty.contains("leave the line of a missing value out"),
        "{empty}"
    );
    let negative = refused("b.csv", "s1,s2,s3\n1,2,4\n-3,4,1\n5,6,2\n", "");
    assert!(!negative.contains("it can be read"), "{negative}");
    let end = refused(
        "c.csv",
        "word,doc,count\nsea,d1,3\nsun,d2,4\n\u{1a}\n",
        "--labels entries",
    );
    assert!(!end.contains("it can be read"), "{end}");
    // A header of numbers, but for the name of the column of names.
    let header = refused(
        "u.csv",
        "userId,31,1029,1061\n7,4,0,3\n2,5,1,0\n9,0,2,2\n",
        "",
    );
    let advice = "it can be read with --labels first-column (names of rows) and --header yes";
    assert!(header.contains(advice), "{header}");
    // A comma may separate thousands.
    let thousands = refused(
        "t.tsv",
        "doc\tthe\tof\nd1\t1,234\t4\nd2\t0\t1\n",
        "--labels first-column",
    );
    assert!(
        thousands.contains("where the comma separates thousands"),
        "{thousands}"
    );
    for text in [
        "\"1,234.5\",2,3\n4,5,6\n7,8,10\n",
        "4,5,6\n\"1,234\",2,3\n7,8,10\n",
    ] {
        let thousands = refused("n.csv", text, "");
        let advice = "is not a number; where the comma separates thousands, without it";
        assert!(thousands.contains(advice), "{thousands}");
    }
    let both = refused("w.tsv", "1,234,567\n500,678,890\n", "");
    assert!(
        both.contains("--delimiter ','") && both.contains("separates thousands"),
        "{both}"
    );
    let names = refused("e.csv", "name,x,y\nstd::vector,1,2\nstd::map,3,4\n", "");
    assert!(
        names.contains("--labels first-column") && !names.contains("replace"),
        "{names}"
    );
    for text in [
        "1::1::5::978300760\n1::2::3::978300761\n",
        "1::F::1::10::48067\n2::M::56::16::70072\n",
    ] {
        let twice = refused("d.csv", text, "--header no");
        assert!(twice.contains("replace `::` by a tab"), "{twice}");
    }
    // The file is no text.
    folder.text("p.csv", "1,2\n3,4\n");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(b"1,2\n3,4\n").unwrap();
    std::fs::write(folder.path("p.csv"), packed.finish().unwrap()).unwrap();
    folder.refuses("1 | fit nmf-kl p.csv -k 1 --output m.npz | p.csv | gzip | .csv.gz");
}

/// Columns of names, and tables of entries, that are read as a matrix are told; headers of numbers, too.
#[test]
fn numbers_that_look_like_names_are_told() {
    let folder = Folder::new();
    let told = |text: &str, options: &str| -> String {
        let file = if text.contains('\t') {
            "t.tsv"
        } else {
            "t.csv"
        };
        folder.text(file, text);
        told(
            &folder,
            &format!("fit nmf-kl {file} {options} --rank 1 --output m.npz"),
        )
    };
    let rows =
        |header: &str| format!("{header},31,1029,1061\n7,4,0,3\n2,5,1,0\n9,0,2,2\n4,1,3,5\n");
    for name in [
        "userId",
        "user_id",
        "#OTU ID",
        "id",
        "ID",
        "docID",
        "index",
        "Unnamed: 0",
        "user",
    ] {
        let err = told(&rows(name), "--header yes");
        assert!(
            err.contains("--labels first-column --header yes"),
            "{name}: {err}"
        );
    }
    // Numbers of other names are data.
    for name in ["width", "acid", "liquid", "a"] {
        let err = told(&rows(name), "--header yes");
        assert!(!err.contains("first-column"), "{name}: {err}");
    }
    let mixed = told(
        "#OTU ID\tS1\tS2\tS3\n4479944\t5\t0\t9\n228054\t3\t2\t1\n1105984\t0\t7\t7\n",
        "",
    );
    assert!(mixed.contains("#OTU ID"), "{mixed}");
    let times = "userId,movieId,rating,timestamp\n7,31,4,964982703\n2,1029,3.5,964981247\n9,1061,5,964982224\n";
    let (header, body) = times.split_once('\n').unwrap();
    for text in [
        times,
        body,
        &format!("{}\n7,31,4\n2,10,3.5\n9,1,5\n", &header[..21]),
    ] {
        let err = told(text, "");
        assert!(err.contains("--labels entries"), "{text}: {err}");
    }
    for header in [
        "2015,2016,2017",
        "2015,2019,2017",
        "400,410,420",
        "7,8,9",
        "100,101,102",
    ] {
        let err = told(&format!("{header}\n4,0,2\n0,1,5\n2,2,2\n"), "");
        assert!(err.contains("--header yes"), "{header}: {err}");
    }
    for row in ["4,0,2", "5,5,5", "3,1,4", "0.5,1.5,2.5"] {
        let err = told(&format!("{row}\n4,0,2\n0,1,5\n2,2,2\n"), "");
        assert!(!err.contains("--header"), "{row}: {err}");
    }
    // Names of rows and of columns, as of a spectrometer: the empty corner tells.
    let spectra = ",400,410,420,430\n0,1,2,3,4\n1,2,1,4,2\n2,1,1,2,5\n";
    let err = told(spectra, "--missing nan");
    assert!(err.contains("--labels first-column"), "{err}");
    folder.refuses(
        "1 | fit nmf-kl t.csv --rank 1 --output m.npz | entry [0, 0] | --labels first-column",
    );
    assert!(!told(spectra, "--labels first-column").contains("--labels"));
    // An axis in the first column needs no header to be told.
    let axis: String = (0..9)
        .map(|i| format!("{},1,{},3\n", 400 + 10 * i, i % 4))
        .collect();
    let err = told(&axis, "");
    assert!(err.contains("grow from row to row"), "{err}");
    let grown: String = (0..9)
        .map(|i| format!("{},1,{},3\n", i * i + i, i % 4))
        .collect();
    assert!(!told(&grown, "").contains("first column"));
    // Models that need complete data are told which others do not.
    folder.text("gap.csv", "1,2\n,4\n");
    for model in ["ntf-l2", "kmeans", "snmf-ding", "plca-vb", "plsa-vb"] {
        let line = format!("fit {model} gap.csv --rank 1 --output m.npz");
        folder.fails(1, &line, &[&format!("{model} needs complete data; nmf-kl")]);
    }
    folder.ok("fit nmf-kl gap.csv --missing nan --rank 1 --output m.npz --quiet");
    // Numbers where words are expected.
    folder.text("ids.txt", "2\tapple\t3\n0\tbanana\t1\n1\tcherry\t2\n");
    let err = told("4.5,0,2\n0,1,5\n2,2,2\n", "--labels ids.txt");
    assert!(
        err.contains("ids.txt") && err.contains("first tab"),
        "{err}"
    );
}

/// Two fits of which one knows names are compared in the order that they have, and that is said.
#[test]
fn a_comparison_without_names_is_told() {
    let folder = Folder::new();
    folder.text("named.csv", "w,d1,d2\na,0,6\nb,4,1\nc,2,2\n");
    folder.text("plain.csv", "4,1\n0,6\n2,2\n");
    folder.ok("fit nmf-kl named.csv --labels first-column -k 2 --output a.npz --quiet");
    folder.ok("fit nmf-kl plain.csv -k 2 --output b.npz --quiet");
    for line in ["compare a.npz b.npz", "compare b.npz a.npz"] {
        let err = told(&folder, line);
        assert!(
            err.contains("have names in a.npz, but not in b.npz"),
            "{err}"
        );
    }
    assert_eq!(told(&folder, "compare a.npz a.npz"), "");
    assert_eq!(told(&folder, "compare b.npz b.npz"), "");
}
