//! Tables with names, what is advised for them, and lists of names.

use plca_io::{Labels, ReadOptions, advice, read_list, read_names};

use super::one_line;
use super::text::{read, strings};
use crate::{Target, scratch};

pub(super) const TARGET: Target = Target {
    name: "table",
    asserts: "errors are one line; a table is read by the options that are advised for it; names are read or refused",
    seeds: || {
        strings(&[
            "word,d1,d2\napple,1,2\npear,0,3\n",
            "apple;d1;3\npear;d2;4\n",
            "sep=;\n;a;b\nx;1;2\n",
            "# made today\n#OTU ID\tA\tB\ttaxonomy\nO1\t5.0\t1.0\tk__B; p__X\n",
            "\"a \"\"b\"\"\",1\r2,NA\r",
            "1 2\n3 4\n",
            "1,5;2,5\n3,0;4,1\n",
        ])
    },
    run: table,
};

pub(super) const LIST: Target = Target {
    name: "names",
    asserts: "errors are one line; there is a name for every line",
    seeds: || strings(&["apple\npear\n", "\u{feff}gene\tid\r\nx\ty\r\n", "a\rb\n\nc"]),
    run: |input| match read_list(scratch::file("names.txt", input), None) {
        Ok(names) => !names.is_empty(),
        Err(e) => {
            one_line(&e);
            false
        }
    },
};

fn table(input: &[u8]) -> bool {
    let mut reached = false;
    for (name, labels) in [
        ("input.csv", Labels::None),
        ("input.tsv", Labels::FirstColumn),
        ("input.csv", Labels::Entries),
    ] {
        let mut options = ReadOptions {
            allow_nan: true,
            allow_negative: true,
            allow_infinite: true,
            ..ReadOptions::default()
        };
        options.table.labels = labels;
        if let Err(e) = read_names(scratch::file(name, input), &options) {
            one_line(&e);
        }
        let refused = match read(name, input, &options) {
            Ok(_) => {
                reached = true;
                continue;
            }
            Err(e) => e,
        };
        one_line(&refused);
        let Some(advice) = advice(&refused, &options) else {
            continue;
        };
        reached = true;
        if advice.without_first_line || advice.without_column.is_some() || advice.decimal_comma {
            continue;
        }
        options.table = advice.table;
        let helped = read(name, input, &options);
        assert!(helped.is_ok(), "{refused}: advised in vain: {helped:?}");
    }
    reached
}
