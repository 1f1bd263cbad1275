//! Rows that are known to fail, with the place that shows why: a list kept beside the code, so that a report can be trusted to say what
//! is new.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::Result;
use crate::report::{Entry, Outcome, Verdict};
use crate::reproduce::Size;

/// The list.
const LIST: &str = include_str!("../known-failures.csv");

/// One line of it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Known {
    figure: String,
    criterion: String,
    /// `real` or `generated`.
    data: String,
    /// `quick`, `usual`, `full` or `any`.
    run: String,
    /// The heading of docs/PAPERS.md that shows the cause.
    cause: String,
}

impl Known {
    fn is_of(&self, figure: &str, row: &Entry) -> bool {
        let data = if row.data.real { "real" } else { "generated" };
        self.figure == figure && self.criterion == row.criterion && self.data == data
    }

    fn concerns(&self, run: Size) -> bool {
        self.run == "any" || self.run == run.name()
    }
}

/// The list as it stands beside the sources.
pub(crate) fn list() -> Result<Vec<Known>> {
    let mut lines = csv::Reader::from_reader(LIST.as_bytes());
    Ok(lines.deserialize().collect::<std::result::Result<_, _>>()?)
}

/// What a run has that the list does not say: failures, passes of rows that are listed, and listed rows that there are none of.
pub(crate) fn surprises(known: &[Known], run: Size, real: bool, found: &[Outcome]) -> Vec<String> {
    let known: Vec<&Known> = known.iter().filter(|k| k.concerns(run)).collect();
    let mut surprises = Vec::new();
    let mut met = BTreeSet::new();
    for outcome in found {
        for row in &outcome.rows {
            let listed = known.iter().position(|k| k.is_of(outcome.figure, row));
            met.extend(listed);
            let (figure, what) = (outcome.figure, &row.criterion);
            match (row.verdict, listed) {
                (Verdict::Fail, None) => surprises.push(format!("{figure}: {what}: fails")),
                (Verdict::Fail, Some(_)) | (_, None) => {}
                (_, Some(at)) => surprises.push(format!(
                    "{figure}: {what}: does not fail, but is listed as a known failure ({})",
                    known[at].cause
                )),
            }
        }
    }
    for (at, line) in known.iter().enumerate() {
        // Where data are not there, rows of them are not either.
        let ran = found
            .iter()
            .any(|outcome| outcome.figure == line.figure && outcome.not_found.is_empty());
        if ran && !met.contains(&at) && (real || line.data != "real") {
            let (figure, what) = (&line.figure, &line.criterion);
            surprises.push(format!(
                "{figure}: {what}: listed as a known failure, but no row"
            ));
        }
    }
    surprises
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::FIGURES;
    use crate::report::Data;

    fn known(criterion: &str, data: &str, run: &str) -> Known {
        Known {
            figure: "si_fig1".into(),
            criterion: criterion.into(),
            data: data.into(),
            run: run.into(),
            cause: "why".into(),
        }
    }

    fn outcome(rows: Vec<Entry>) -> [Outcome; 1] {
        [Outcome {
            figure: "si_fig1",
            source: "",
            title: "",
            criterion: "",
            seconds: 0.0,
            not_found: Vec::new(),
            rows,
        }]
    }

    fn row(criterion: &str, value: f64) -> Entry {
        Entry::number(criterion, value, &Data::generated("none"), &[]).below(1.0)
    }

    #[test]
    fn only_a_failure_that_is_listed_is_no_surprise() {
        let list = [known("a", "generated", "any")];
        let of = |rows| surprises(&list, Size::Quick, false, &outcome(rows));
        assert!(of(vec![row("a", 2.0), row("b", 0.0)]).is_empty());
        assert_eq!(of(vec![row("a", 2.0), row("b", 2.0)]).len(), 1);
        assert!(of(vec![row("a", 0.0)])[0].contains("(why)"));
        assert!(of(vec![row("b", 0.0)])[0].ends_with("no row"));
    }

    #[test]
    fn lines_are_for_their_run_and_their_data() {
        let failed = outcome(vec![row("a", 2.0)]);
        let list = [known("a", "generated", "full")];
        assert_eq!(surprises(&list, Size::Quick, false, &failed).len(), 1);
        assert!(surprises(&list, Size::Full, false, &failed).is_empty());
        let list = [known("a", "real", "any")];
        assert_eq!(surprises(&list, Size::Quick, false, &failed).len(), 1);
        // With real data there is also no row for the line.
        assert_eq!(surprises(&list, Size::Quick, true, &failed).len(), 2);
        let [mut without] = outcome(vec![row("b", 0.0)]);
        without.not_found = vec!["set/file".into()];
        assert!(surprises(&list, Size::Quick, true, &[without]).is_empty());
    }

    #[test]
    fn every_line_of_the_list_has_a_figure_and_a_cause() {
        let papers = std::fs::read_to_string(crate::root().join("docs/PAPERS.md"));
        for line in list().unwrap() {
            assert!(FIGURES.iter().any(|f| f.name == line.figure), "{line:?}");
            assert!(["real", "generated"].contains(&&*line.data), "{line:?}");
            let runs = [Size::Quick, Size::Usual, Size::Full].map(Size::name);
            assert!(line.run == "any" || runs.contains(&&*line.run), "{line:?}");
            let papers = papers.as_ref().expect("docs/PAPERS.md shows the causes");
            let heading = |l: &str| l.trim_start_matches('#').trim() == line.cause;
            let mut headings = papers.lines().filter(|l| l.starts_with('#'));
            assert!(headings.any(heading), "{line:?}");
        }
    }
}
