//! The numbered equations of the papers, as data: what each says, and whether it is computed, shown by a test, or text.

use std::collections::BTreeMap;

use super::{At, Place, Tag, singles};
use crate::Result;

const LIST: &str = include_str!("papers.csv");

/// What becomes of an equation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Lines of code with its tag, or with the tags of those that it is a case of.
    Computed,
    /// A test shows it.
    Identity,
    /// Nothing: a definition, or a step of a derivation.
    Text,
}

/// One line of the list.
#[derive(Clone, Debug)]
pub(super) struct Equation {
    kind: Kind,
    /// Other tags that compute it, or the test.
    by: String,
    pub(super) what: String,
}

impl Equation {
    /// Tags of the lines that compute it, where they are another's.
    pub(super) fn by_tags(&self) -> Vec<Tag> {
        if self.kind != Kind::Computed {
            return Vec::new();
        }
        let tags = self
            .by
            .split(';')
            .filter_map(|tag| tag.trim().split_once(' '));
        tags.map(|(key, what)| (key.to_owned(), what.to_owned()))
            .collect()
    }

    /// File and name of the test that shows it.
    pub(super) fn test(&self) -> Option<(&str, &str)> {
        match self.kind {
            Kind::Identity => self.by.split_once("::"),
            _ => None,
        }
    }

    /// What stands in place of code.
    pub(super) fn notes(&self) -> Option<String> {
        match self.kind {
            Kind::Computed if self.by.is_empty() => None,
            Kind::Computed => Some(format!("as {}", self.by)),
            Kind::Identity => Some("identity".into()),
            Kind::Text => Some("text".into()),
        }
    }
}

/// All lists.
#[derive(Clone, Debug, Default)]
pub(super) struct Papers {
    /// By paper, from its first number on.
    lists: BTreeMap<String, Vec<Equation>>,
}

/// The fields of a line; quotes keep commas.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            c => fields
                .last_mut()
                .into_iter()
                .for_each(|field| field.push(c)),
        }
    }
    fields
}

impl Papers {
    pub(super) fn read() -> Result<Self> {
        Self::parse(LIST)
    }

    /// Every number from 1 on, without gaps.
    pub(super) fn parse(list: &str) -> Result<Self> {
        let mut papers = Self::default();
        for (n, line) in list.lines().enumerate().skip(1) {
            let wrong = |what: &str| format!("list of equations, line {}: {what}", n + 1);
            let fields = fields(line);
            let [paper, first, last, kind, by, what] = &fields[..] else {
                return Err(wrong("not six fields").into());
            };
            let number = |text: &str| {
                let number = text.parse::<usize>();
                number.map_err(|_| wrong(&format!("`{text}` is not a number")))
            };
            let (first, last) = (number(first)?, number(last)?);
            let kind = match &**kind {
                "computed" => Kind::Computed,
                "identity" => Kind::Identity,
                "text" => Kind::Text,
                other => return Err(wrong(&format!("`{other}` is not a kind")).into()),
            };
            let equations = papers.lists.entry(paper.clone()).or_default();
            let next = equations.len() + 1;
            if first != next || last < first {
                return Err(wrong(&format!("{paper} ({next}) is missing or there twice")).into());
            }
            let equation = Equation {
                kind,
                by: by.clone(),
                what: what.clone(),
            };
            equations.extend((first..=last).map(|_| equation.clone()));
        }
        Ok(papers)
    }

    fn all(&self) -> impl Iterator<Item = (Tag, &Equation)> {
        self.lists.iter().flat_map(|(paper, equations)| {
            let numbered = (1..).zip(equations);
            numbered.map(move |(n, equation)| ((paper.clone(), format!("eq. {n}")), equation))
        })
    }

    /// A tag for every number.
    pub(super) fn tags(&self) -> Vec<Tag> {
        self.all().map(|(tag, _)| tag).collect()
    }

    pub(super) fn get(&self, (paper, what): &Tag) -> Option<&Equation> {
        let number: usize = what.strip_prefix("eq. ")?.parse().ok()?;
        self.lists.get(paper)?.get(number.checked_sub(1)?)
    }

    /// Where lists and tags disagree. `source` reads a file.
    pub(super) fn wrong(
        &self,
        found: &[(Tag, Place)],
        source: impl Fn(&str) -> Option<String>,
    ) -> Vec<String> {
        let mut wrong = Vec::new();
        for (tag, place) in found {
            let (key, what) = tag;
            if what.starts_with("eq. ") && self.lists.contains_key(key) && self.get(tag).is_none() {
                let (file, line) = (&place.file, place.line);
                wrong.push(format!(
                    "{file}:{line}: [{key} {what}]: the paper has no such number"
                ));
            }
        }
        let in_code = |tag: &Tag| {
            let of = |(t, place): &(Tag, Place)| t == tag && place.at == At::Code;
            found.iter().any(of)
        };
        for (tag, equation) in self.all() {
            let name = format!("[{} {}]", tag.0, tag.1);
            match equation.kind {
                Kind::Computed if equation.by.is_empty() => {
                    if !in_code(&tag) {
                        wrong.push(format!("{name}: no line computes it"));
                    }
                }
                Kind::Computed => {
                    let tags = equation.by_tags();
                    let singles = |(key, what): Tag| {
                        let whats = singles(&what).into_iter();
                        whats.map(move |what| (key.clone(), what))
                    };
                    for tag in tags.into_iter().flat_map(singles) {
                        if !in_code(&tag) {
                            wrong.push(format!("{name}: no line has [{} {}]", tag.0, tag.1));
                        }
                    }
                }
                Kind::Identity => {
                    let there = equation.test().is_some_and(|(file, test)| {
                        let text = source(file).unwrap_or_default();
                        text.contains(&format!("fn {test}("))
                    });
                    if !there {
                        wrong.push(format!("{name}: no test {}", equation.by));
                    }
                }
                Kind::Text => {
                    if in_code(&tag) {
                        wrong.push(format!("{name}: a line computes what is listed as text"));
                    }
                }
            }
        }
        wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "paper,first,last,kind,by,what\n";

    fn parse(lines: &str) -> Result<Papers> {
        Papers::parse(&format!("{HEAD}{lines}"))
    }

    fn place(at: At) -> Place {
        Place {
            file: "a.rs".into(),
            line: 7,
            function: "f".into(),
            at,
        }
    }

    fn tag(key: &str, what: &str) -> Tag {
        (key.into(), what.into())
    }

    #[test]
    fn every_number_is_there_once() {
        let papers = parse("A,1,2,text,,\"a, b\"\nB,1,1,text,,c\nA,3,3,computed,,d\n").unwrap();
        assert_eq!(papers.tags().len(), 4);
        assert_eq!(papers.get(&tag("A", "eq. 2")).unwrap().what, "a, b");
        assert!(papers.get(&tag("A", "eq. 4")).is_none());
        assert!(papers.get(&tag("A", "eq. 0")).is_none());
        for wrong in [
            "A,2,2,text,,x\n",
            "A,1,1,text,,x\nA,1,1,text,,x\n",
            "A,1,1,text,,x\nA,3,3,text,,x\n",
            "A,1,1,proven,,x\n",
            "A,1,text,,x\n",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn lists_and_code_must_agree() {
        let papers = parse(
            "A,1,1,computed,,x\nA,2,2,computed,A eq. 1; S 4,x\nA,3,3,identity,t.rs::holds,x\nA,4,4,text,,x\n",
        )
        .unwrap();
        let mut found = vec![
            (tag("A", "eq. 1"), place(At::Code)),
            (tag("S", "4"), place(At::Code)),
            (tag("A", "eq. 4"), place(At::Doc)),
            (tag("A", "alg. 1"), place(At::Code)),
            (tag("C", "eq. 9"), place(At::Code)),
        ];
        let source = |file: &str| (file == "t.rs").then(|| "#[test]\nfn holds() {}".into());
        assert_eq!(papers.wrong(&found, source), [""; 0]);
        assert_eq!(papers.wrong(&found, |_| None).len(), 1);
        found.push((tag("A", "eq. 5"), place(At::Test)));
        found.push((tag("A", "eq. 4"), place(At::Code)));
        let wrong = papers.wrong(&found, source);
        assert!(wrong[0].starts_with("a.rs:7: [A eq. 5]: the paper has no"));
        assert!(wrong[1].ends_with("listed as text"), "{wrong:?}");
        found.retain(|(t, _)| *t != tag("A", "eq. 1"));
        // It computes the second one too.
        assert_eq!(papers.wrong(&found, source).len(), 4);
    }

    #[test]
    fn the_lists_are_whole() {
        let papers = Papers::read().unwrap();
        for (paper, last) in [
            ("SI", 101),
            ("LV", 19),
            ("CE", 7),
            ("HS", 9),
            ("SKELLAM", 58),
        ] {
            assert_eq!(papers.lists[paper].len(), last, "{paper}");
        }
    }
}
