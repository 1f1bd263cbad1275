//! The report: what was measured, how it must stand to a limit, and the run that it came from.

use serde::Serialize;

use crate::reproduce::Size;

/// Which data a row was measured on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Data {
    pub(crate) name: String,
    /// Of what the file holds, unpacked, where there is one.
    pub(crate) sha256: Option<String>,
    pub(crate) real: bool,
}

impl Data {
    pub(crate) fn generated(name: &str) -> Self {
        Self {
            name: name.into(),
            sha256: None,
            real: false,
        }
    }

    /// A picture: of its values, as packed bytes differ from program to program.
    pub(crate) fn of_pixels(name: &str, values: &[f64]) -> Self {
        let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        Self {
            name: name.into(),
            sha256: Some(crate::files::sha256(&bytes)),
            real: true,
        }
    }

    /// For people.
    pub(crate) fn origin(&self) -> String {
        match self.real {
            true => self.name.clone(),
            false => format!("generated: {}", self.name),
        }
    }
}

/// How a value must stand to its limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "relation", content = "limit")]
pub(crate) enum Condition {
    #[serde(rename = "<")]
    Below(f64),
    #[serde(rename = "<=")]
    AtMost(f64),
    #[serde(rename = ">")]
    Above(f64),
    #[serde(rename = ">=")]
    AtLeast(f64),
    /// Both ends included.
    #[serde(rename = "in")]
    Within(f64, f64),
}

impl Condition {
    /// Not-a-number holds to nothing.
    fn holds(self, value: f64) -> bool {
        match self {
            Self::Below(limit) => value < limit,
            Self::AtMost(limit) => value <= limit,
            Self::Above(limit) => value > limit,
            Self::AtLeast(limit) => value >= limit,
            Self::Within(low, high) => (low..=high).contains(&value),
        }
    }

    /// For people.
    pub(crate) fn text(self) -> String {
        match self {
            Self::Below(limit) => format!("< {}", number(limit)),
            Self::AtMost(limit) => format!("≤ {}", number(limit)),
            Self::Above(limit) => format!("> {}", number(limit)),
            Self::AtLeast(limit) => format!("≥ {}", number(limit)),
            Self::Within(low, high) => format!("{} to {}", number(low), number(high)),
        }
    }
}

/// Whether a row holds. What has no condition is reported and counts for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    Pass,
    Fail,
    Reported,
}

impl Verdict {
    /// As the report says it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Reported => "reported",
        }
    }
}

/// The paper's own number.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Reference {
    pub(crate) value: f64,
    /// The standard deviation, where the paper prints one.
    pub(crate) deviation: Option<f64>,
    /// Paper and table, figure or page.
    pub(crate) place: &'static str,
}

impl Reference {
    /// For people.
    pub(crate) fn text(&self) -> String {
        let deviation = self.deviation.map(|d| format!(" ({})", number(d)));
        let value = number(self.value);
        format!("{value}{}, {}", deviation.unwrap_or_default(), self.place)
    }
}

/// One thing measured.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Entry {
    /// What it is, unique within a figure.
    pub(crate) criterion: String,
    /// `None` where one number does not tell.
    pub(crate) value: Option<f64>,
    /// What else was seen.
    pub(crate) detail: Option<String>,
    #[serde(flatten)]
    pub(crate) condition: Option<Condition>,
    pub(crate) reference: Option<Reference>,
    pub(crate) verdict: Verdict,
    pub(crate) data: Data,
    pub(crate) files: Vec<String>,
}

impl Entry {
    /// A number, reported until it is given a condition.
    pub(crate) fn number(criterion: &str, value: f64, data: &Data, files: &[String]) -> Self {
        Self {
            criterion: criterion.into(),
            value: Some(value),
            detail: None,
            condition: None,
            reference: None,
            verdict: Verdict::Reported,
            data: data.clone(),
            files: files.to_vec(),
        }
    }

    /// Words, reported.
    pub(crate) fn words(criterion: &str, words: String, data: &Data, files: &[String]) -> Self {
        Self {
            value: None,
            detail: Some(words),
            ..Self::number(criterion, f64::NAN, data, files)
        }
    }

    /// A figure that did not come to an end.
    pub(crate) fn error(message: String) -> Self {
        Self {
            verdict: Verdict::Fail,
            ..Self::words("runs to its end", message, &Data::generated("nothing"), &[])
        }
    }

    fn held(mut self, condition: Condition) -> Self {
        let holds = self.value.is_some_and(|value| condition.holds(value));
        self.verdict = if holds { Verdict::Pass } else { Verdict::Fail };
        self.condition = Some(condition);
        self
    }

    /// Passes below a limit.
    pub(crate) fn below(self, limit: f64) -> Self {
        self.held(Condition::Below(limit))
    }

    /// Passes at a limit and below.
    pub(crate) fn at_most(self, limit: f64) -> Self {
        self.held(Condition::AtMost(limit))
    }

    /// Passes above a limit.
    pub(crate) fn above(self, limit: f64) -> Self {
        self.held(Condition::Above(limit))
    }

    /// Passes at a limit and above.
    pub(crate) fn at_least(self, limit: f64) -> Self {
        self.held(Condition::AtLeast(limit))
    }

    /// Passes within two limits, these included.
    pub(crate) fn within(self, low: f64, high: f64) -> Self {
        self.held(Condition::Within(low, high))
    }

    /// The paper's number, and where it stands.
    pub(crate) fn paper(self, value: f64, place: &'static str) -> Self {
        self.reference(value, None, place)
    }

    /// The paper's mean and standard deviation, and where they stand.
    pub(crate) fn paper_mean(self, (mean, deviation): (f64, f64), place: &'static str) -> Self {
        self.reference(mean, Some(deviation), place)
    }

    fn reference(mut self, value: f64, deviation: Option<f64>, place: &'static str) -> Self {
        self.reference = Some(Reference {
            value,
            deviation,
            place,
        });
        self
    }

    /// What else was seen.
    pub(crate) fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Value and detail for people.
    pub(crate) fn measured(&self) -> String {
        let parts = [self.value.map(number), self.detail.clone()];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        parts.join("; ")
    }
}

/// A number for people.
pub(crate) fn number(x: f64) -> String {
    match x {
        0.0 => "0".into(),
        x if x.abs() < 1e-3 || x.abs() >= 1e5 => format!("{x:.2e}"),
        x => {
            let digits = format!("{x:.4}");
            digits.trim_end_matches('0').trim_end_matches('.').into()
        }
    }
}

/// What a report was made by and on.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Origin {
    pub(crate) version: &'static str,
    /// Of the sources; `None` outside a repository.
    pub(crate) commit: Option<String>,
    /// Whether tracked files differ from the commit.
    pub(crate) modified: bool,
    pub(crate) instruction_set: String,
    pub(crate) threads: usize,
    pub(crate) run: Size,
    pub(crate) seed: u64,
    /// Whether real data were asked for.
    pub(crate) real_data: bool,
}

impl Origin {
    pub(crate) fn here(run: Size, seed: u64, real_data: bool) -> Self {
        let git = |arguments: &[&str]| {
            let done = std::process::Command::new("git")
                .args(arguments)
                .current_dir(crate::root())
                .output()
                .ok()?;
            let text = String::from_utf8(done.stdout).ok()?;
            done.status.success().then(|| text.trim().to_owned())
        };
        let changes = git(&["status", "--porcelain", "--untracked-files=no"]);
        // The name of a variant comes before what it holds.
        let arch = format!("{:?}", plca_dist::simd::instruction_set());
        let arch = arch.split(|c: char| !c.is_alphanumeric()).next();
        let instruction_set = match arch {
            Some("V3") => "avx2".into(),
            Some("V4") => "avx512".into(),
            other => other.unwrap_or_default().to_lowercase(),
        };
        Self {
            version: env!("CARGO_PKG_VERSION"),
            commit: git(&["rev-parse", "HEAD"]),
            modified: changes.is_some_and(|changes| !changes.is_empty()),
            instruction_set,
            threads: rayon::current_num_threads(),
            run,
            seed,
            real_data,
        }
    }

    /// For people.
    pub(crate) fn text(&self) -> String {
        let commit = self.commit.as_deref().unwrap_or("of no commit");
        let modified = if self.modified { ", modified" } else { "" };
        format!(
            "version {}, {commit}{modified}; {}, {} threads; {} run, seed {}",
            self.version,
            self.instruction_set,
            self.threads,
            self.run.name(),
            self.seed
        )
    }
}

/// What became of one figure.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Outcome {
    pub(crate) figure: &'static str,
    pub(crate) source: &'static str,
    pub(crate) title: &'static str,
    pub(crate) criterion: &'static str,
    pub(crate) seconds: f64,
    /// Files that were asked for and are not in the folder of data: other data were taken, or rows are missing.
    pub(crate) not_found: Vec<String>,
    pub(crate) rows: Vec<Entry>,
}

/// How many rows there are of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Counts {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) reported: usize,
}

impl Counts {
    pub(crate) fn of<'a>(rows: impl IntoIterator<Item = &'a Entry>) -> Self {
        let mut counts = Self::default();
        for row in rows {
            match row.verdict {
                Verdict::Pass => counts.passed += 1,
                Verdict::Fail => counts.failed += 1,
                Verdict::Reported => counts.reported += 1,
            }
        }
        counts
    }

    /// For people. Only what can fail is counted.
    pub(crate) fn text(self) -> String {
        let judged = self.passed + self.failed;
        format!(
            "{} of {judged} criteria hold; {} more rows are reported and cannot fail",
            self.passed, self.reported
        )
    }
}

/// The whole.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) origin: Origin,
    pub(crate) counts: Counts,
    pub(crate) figures: Vec<Outcome>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(value: f64) -> Entry {
        Entry::number("c", value, &Data::generated("none"), &[])
    }

    #[test]
    fn not_a_number_fails_every_condition() {
        let rows = [
            row(f64::NAN).below(1.0),
            row(f64::NAN).at_most(1.0),
            row(f64::NAN).above(1.0),
            row(f64::NAN).at_least(1.0),
            row(f64::NAN).within(0.0, 1.0),
        ];
        assert!(rows.iter().all(|row| row.verdict == Verdict::Fail));
        assert_eq!(row(f64::NAN).verdict, Verdict::Reported);
    }

    #[test]
    fn limits_are_on_the_side_that_they_say() {
        let at = [
            row(1.0).below(1.0),
            row(1.0).at_most(1.0),
            row(1.0).above(1.0),
            row(1.0).at_least(1.0),
            row(1.0).within(1.0, 2.0),
            row(2.1).within(1.0, 2.0),
        ];
        let verdicts = at.map(|row| row.verdict == Verdict::Pass);
        assert_eq!(verdicts, [false, true, false, true, true, false]);
    }

    #[test]
    fn only_what_can_fail_is_counted() {
        let rows = [row(0.0).below(1.0), row(2.0).below(1.0), row(0.0)];
        let counts = Counts::of(&rows);
        assert_eq!((counts.passed, counts.failed, counts.reported), (1, 1, 1));
        assert!(counts.text().starts_with("1 of 2 criteria"));
        assert_eq!(Entry::error("e".into()).verdict, Verdict::Fail);
    }

    #[test]
    fn a_row_is_data() {
        let row = row(0.5).within(0.0, 1.0);
        let row = row.paper_mean((0.4, 0.1), "[X] table 1").detail("d");
        let value = serde_json::to_value(&row).unwrap();
        assert_eq!(value["relation"], "in");
        assert_eq!(value["limit"], serde_json::json!([0.0, 1.0]));
        assert_eq!(value["reference"]["place"], "[X] table 1");
        assert_eq!(value["verdict"], "pass");
        let free = serde_json::to_value(self::row(0.5)).unwrap();
        assert!(free.get("limit").is_none() && free["verdict"] == "reported");
    }

    #[test]
    fn small_numbers_are_not_rounded_to_zero() {
        let all = [3.2e-10, 2.0064, 0.0, 0.05, 12.0].map(number);
        assert_eq!(all, ["3.20e-10", "2.0064", "0", "0.05", "12"]);
    }
}
