//! Numbers in cells: headers, delimiters, quotes and labels.

use plca_io::{DataFile, Header, Labels, ReadOptions, Table, advice, read_data_with, read_names};

/// The shape and the values, or what is said from the place on.
fn read(name: &str, text: &str, table: &Table) -> Result<(Vec<usize>, Vec<f64>), String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    let options = ReadOptions {
        allow_nan: true,
        table: table.clone(),
        ..ReadOptions::default()
    };
    match read_data_with::<f64>(&path, &options) {
        Ok(DataFile::Dense(v)) => {
            assert!(!v.fortran);
            // NaN is equal to nothing.
            let values = v.values.iter().map(|x| if x.is_nan() { -1.0 } else { *x });
            Ok((v.shape, values.collect()))
        }
        Ok(sparse) => panic!("{sparse:?}"),
        Err(e) => Err(e.to_string().split_once(name).unwrap().1[2..].to_string()),
    }
}

const AUTO: Table = Table {
    header: Header::Auto,
    delimiter: None,
    labels: Labels::None,
};
const LABELS: Table = Table {
    labels: Labels::FirstColumn,
    ..AUTO
};

fn header(header: Header) -> Table {
    Table { header, ..AUTO }
}

#[test]
fn cells_may_be_quoted() {
    for (text, shape) in [
        ("1,2\n3,4\n", [2, 2]),
        ("\"1\",\"2\"\n 3 , \"4\"\n", [2, 2]),
        ("\"a,b\",\"c \"\"d\"\"\"\n1,2\n3,4\n", [2, 2]),
        ("\"a\nb\n\",c\n1,2\n3,\"4\"", [2, 2]),
        ("\u{feff}a,b\r\n1,2\r\n\r\n3,4\r\n\r\n", [2, 2]),
        ("\u{feff}1,2\n3,4\n", [2, 2]),
        ("  \n1,2,3,4\n", [1, 4]),
        ("1\n2\n\"3\"\n4\n\n", [4, 1]),
    ] {
        let expected = (shape.to_vec(), vec![1.0, 2.0, 3.0, 4.0]);
        assert_eq!(read("v.csv", text, &AUTO), Ok(expected), "{text:?}");
    }
    let gaps = (vec![2, 3], vec![-1.0, 2.0, -1.0, -1.0, -1.0, -1.0]);
    assert_eq!(read("v.csv", ",2,\n,\"\",\n", &AUTO), Ok(gaps.clone()));
    // At either end of a line a tab is no blank.
    assert_eq!(read("v.tsv", "\t2\t\n\t\t\n", &AUTO), Ok(gaps));
}

#[test]
fn headers_are_recognised_or_announced() {
    let years = "2010,2011\n3,4\n";
    let (two, one) = (
        (vec![2, 2], vec![2010.0, 2011.0, 3.0, 4.0]),
        (vec![1, 2], vec![3.0, 4.0]),
    );
    assert_eq!(read("v.csv", years, &AUTO), Ok(two.clone()));
    assert_eq!(read("v.csv", years, &header(Header::No)), Ok(two));
    assert_eq!(read("v.csv", years, &header(Header::Yes)), Ok(one.clone()));
    assert_eq!(read("v.csv", "a,b\n3,4\n", &AUTO), Ok(one));
    #[rustfmt::skip]
    let cases = [
        ("a,b\n3,4\n", Header::No, "line 1: column 1: `a` is not a number"),
        ("1,2\n", Header::Yes, "holds no numbers"),
        ("a,2\n3,4\n", Header::Auto, "line 1: column 1: `a` is not a number"),
        ("a\n3,4\n", Header::Auto, "line 2: has 2 cells, the lines before have 1"),
    ];
    for (text, how, why) in cases {
        assert_eq!(read("v.csv", text, &header(how)), Err(why.into()));
    }
}

#[test]
fn labels_are_left_out() {
    let expected = || Ok((vec![2, 2], vec![1.0, 2.0, 3.0, 4.0]));
    for text in [
        "x,1,2\ny,3,4\n",
        "gene,one,two\nx,1,2\ny,3,4\n",
        // As R writes it.
        "one,two\nx,1,2\ny,3,4\n",
        "\"\",\"one\",\"two\"\n\"x, the first\",1,2\n7,3,4\n",
    ] {
        assert_eq!(read("v.csv", text, &LABELS), expected(), "{text:?}");
    }
    for (text, why) in [
        ("x\ny\n", "line 1: column 1: has a label and no number"),
        (
            "x,1,2\ny,3\n",
            "line 2: has 2 cells, the lines before have 3",
        ),
        ("x,1,2\ny,3,z\n", "line 2: column 3: `z` is not a number"),
    ] {
        assert_eq!(read("v.csv", text, &LABELS), Err(why.into()));
    }
}

#[test]
fn cells_are_cut_where_it_is_said() {
    let cut = |delimiter| Table {
        delimiter: Some(delimiter),
        ..AUTO
    };
    let expected = || Ok((vec![1, 2], vec![1.0, 2.0]));
    assert_eq!(read("v.tsv", "1\t2\n", &AUTO), expected());
    assert_eq!(read("v.tsv", "1,2\n", &cut(b',')), expected());
    assert_eq!(read("v.csv", "1;2\n", &cut(b';')), expected());
    for byte in [b'"', b'\n', b'\r', 0xe4] {
        let why = format!("{:?} cannot separate cells", char::from(byte));
        assert_eq!(read("v.csv", "1,2\n", &cut(byte)), Err(why));
    }
}

/// However much comes behind it, the line is that of the quote.
#[test]
fn a_quote_that_is_never_closed_is_refused_where_it_began() {
    let text = format!("\"{}", "\"\"\n".repeat(300_000));
    let read = read("v.csv", &text, &AUTO);
    assert_eq!(read, Err("line 1: a quote is not closed".into()));
}

/// One entry a line: the names of its indices, then its value.
#[test]
fn lines_are_entries() {
    let entries = Table {
        labels: Labels::Entries,
        ..AUTO
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("v.csv");
    let options = ReadOptions {
        table: entries.clone(),
        ..ReadOptions::default()
    };
    let read = |text: &str| {
        std::fs::write(&path, text).unwrap();
        let data = read_data_with::<f64>(&path, &options).map_err(|e| e.to_string())?;
        let names = read_names(&path, &options).unwrap();
        let names: Vec<_> = names.into_iter().map(|n| n.unwrap().join(" ")).collect();
        match data {
            DataFile::Sparse(v) => Ok::<_, String>((v.shape, v.indices, v.values, names)),
            DataFile::Dense(v) => panic!("{v:?}"),
        }
    };
    let text = "word,doc,count\nsun,b,2\n\n\"se,a\",b,1\nsun,a,0.5\n";
    let (shape, indices, values, names) = read(text).unwrap();
    assert_eq!((shape, indices), (vec![2, 2], vec![1, 1, 0, 1, 1, 0]));
    assert_eq!(
        (values, names),
        (
            vec![2.0, 1.0, 0.5],
            vec!["se,a sun".into(), "a b".to_string()]
        )
    );
    // Names that are all whole numbers are in the order of those, others are not; no header; a name more than once; order 1 and 3.
    let (shape, indices, _, names) = read("10,9,1\n9,x,1\n10,9,4\n").unwrap();
    assert_eq!((shape, indices), (vec![2, 2], vec![1, 0, 0, 1, 1, 0]));
    assert_eq!(names, ["9 10", "9 x"]);
    let (_, _, _, names) = read("10,1\n9,1\n09,1\n-1,2\n").unwrap();
    assert_eq!(names, ["-1 09 9 10"]);
    assert_eq!(read("a,b,c,1\n").unwrap().0, [1, 1, 1]);

    #[rustfmt::skip]
    let cases = [
        ("", "holds no entry"),
        ("word,doc,count\n", "holds no entry"),
        ("word,doc,count\n,b,1\n", "line 2: column 1: has no name"),
        (",word,doc,count\n1,sea,a,2\n", "line 1: column 1: has no name, as above numbers of rows"),
        ("7\n", "line 1: column 1: needs at least one name and a value"),
        ("a,b,1\na,1\n", "line 2: has 2 cells, the lines before have 3"),
        ("a,b,1\na,,1\n", "line 2: column 2: has no name"),
        ("a,b,1\na,c,x\n", "line 2: column 3: `x` is not a number"),
        ("a,b,1\na,c,\n", "line 2: column 3: `` is not a number"),
        ("a,b,-1\n", "line 1: column 3: value -1 is negative"),
        ("a,b,nan\n", "line 1: column 3: value nan is not a number"),
        ("a,\"b,1\n", "line 1: a quote is not closed"),
    ];
    for (text, what) in cases {
        let error = read(text).unwrap_err();
        assert!(error.contains(what), "{text:?}: {error}");
    }
}

/// A name is what Python's `csv` writes and reads: quotes of its own stay.
#[test]
fn quotes_of_a_name_are_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("v.csv");
    let text = "id,\"a \"\"b\"\"\",\"\"\"\", \"c\"\n\"Says \"\"no\"\"\",1,2,3\n\"\"\"Yes\"\" vote\",4,5,6\n\"\"\"Yes\"\"\",7,8,9\n";
    std::fs::write(&path, text).unwrap();
    let table = Table {
        labels: Labels::FirstColumn,
        header: Header::Yes,
        ..Table::default()
    };
    let options = ReadOptions {
        table,
        ..ReadOptions::default()
    };
    let names = read_names(&path, &options).unwrap();
    assert_eq!(
        names[0].as_deref().unwrap(),
        ["Says \"no\"", "\"Yes\" vote", "\"Yes\""]
    );
    assert_eq!(names[1].as_deref().unwrap(), ["a \"b\"", "\"", "c"]);
}

/// The delimiter, the labels, whether the first line goes, the column that goes, and whether commas are points.
type Advised = (Option<u8>, Labels, bool, Option<usize>, bool);

/// What makes a refused table readable.
fn advised(name: &str, text: &str, table: &Table) -> Option<Advised> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    let options = ReadOptions {
        table: table.clone(),
        ..ReadOptions::default()
    };
    let refused = read_data_with::<f64>(&path, &options).unwrap_err();
    let found = advice(&refused, &options)?;
    Some((
        found.table.delimiter,
        found.table.labels,
        found.without_first_line,
        found.without_column,
        found.decimal_comma,
    ))
}

#[test]
fn what_is_advised() {
    use Labels::{Entries, FirstColumn, None as Plain};
    let entries = Table {
        labels: Entries,
        ..AUTO
    };
    let units = "word,doc,count,unit\nsea,d1,3,kg\nsun,d2,4,kg\n";
    let quoted = "\"Price\n(EUR)\"\n";
    #[rustfmt::skip]
    let cases = [
        ("a.csv", units.to_string(), &entries, Some((None, Entries, false, Some(4), false))),
        ("a.csv", units.to_string(), &AUTO, Some((None, Entries, false, Some(4), false))),
        ("a.csv", "g,1\nh,2\n".into(), &AUTO, Some((None, FirstColumn, false, None, false))),
        // No line has one of the delimiters: cells are in quotes, which those between tabs are not.
        ("a.csv", format!("{quoted}\"1,5\"\n\"2,5\"\n"), &AUTO, Some((Some(b';'), Plain, false, None, true))),
        ("a.tsv", format!("{quoted}1\n2\n"), &AUTO, Some((Some(b';'), Plain, false, None, false))),
        ("a.tsv", "1\tx;|y\n5\n6\n".into(), &AUTO, Some((Some(b','), Plain, false, None, false))),
        ("a.tsv", "sep=;\n1;b\n5\n6\n".into(), &AUTO, Some((Some(b'|'), Plain, false, None, false))),
    ];
    for (name, text, table, want) in cases {
        assert_eq!(advised(name, &text, table), want, "{text:?}");
    }
    let semicolon = Table {
        delimiter: Some(b';'),
        ..entries
    };
    let numbers = "a; \" 5 \";1,5\nb; \" 6 \";2,5\n";
    let found = advised("a.csv", numbers, &semicolon);
    assert_eq!(found, Some((Some(b','), Entries, false, None, false)));
}
