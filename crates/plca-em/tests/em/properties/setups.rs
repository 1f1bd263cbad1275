//! Models with their settings, and what may be asked of each.

use plca_em::{Given, Update};

/// A model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Plca,
    Plsa(Given),
    Nmf(Update),
}

impl Kind {
    /// Those that take data of this order.
    pub(crate) fn of_order(order: usize) -> Vec<Self> {
        let matrices = [
            Self::Plsa(Given::Columns),
            Self::Plsa(Given::Rows),
            Self::Nmf(Update::Simultaneous),
            Self::Nmf(Update::Sequential),
        ];
        let more = if order == 2 { &matrices[..] } else { &[] };
        [&[Self::Plca], more].concat()
    }
}

/// A prior on every block whose M-step is exact.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Choice {
    /// Symmetric, with this concentration.
    Dirichlet(f64),
    /// With this weight.
    Entropic(f64),
    /// Independent, with mean 0 and this variance.
    LogisticNormal(f64),
}

/// A model with its settings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) kind: Kind,
    pub(crate) prior: Option<Choice>,
    pub(crate) squarem: bool,
    /// Coordinate descent instead of EM.
    pub(crate) fast: bool,
    /// Keeps the first factor.
    pub(crate) freeze_first: bool,
    /// Keeps `P(z)` (PLCA only).
    pub(crate) freeze_weights: bool,
    /// Masked multiplicative updates of PLCA; NMF has them as its sequential form.
    pub(crate) multiplicative: bool,
    /// The start has entries so small that blocks renewed alone leave cells without probability: see [`super::wide`].
    pub(crate) wide: bool,
}

impl From<Kind> for Setup {
    fn from(kind: Kind) -> Self {
        Self {
            kind,
            prior: None,
            squarem: false,
            fast: false,
            freeze_first: false,
            freeze_weights: false,
            multiplicative: false,
            wide: false,
        }
    }
}

impl Setup {
    /// Every model that takes data of this order, plain and with each of its settings.
    pub(crate) fn all(order: usize) -> Vec<Self> {
        Kind::of_order(order)
            .into_iter()
            .flat_map(|kind| Self::from(kind).variants(order))
            .collect()
    }

    fn variants(self, order: usize) -> Vec<Self> {
        let (plca, nmf) = (self.kind == Kind::Plca, matches!(self.kind, Kind::Nmf(_)));
        let [
            mut prior,
            mut first,
            mut weights,
            mut multiplicative,
            mut squarem,
        ] = [self; 5];
        prior.prior = Some(Choice::Dirichlet(1.5));
        first.freeze_first = true;
        weights.freeze_weights = true;
        multiplicative.multiplicative = true;
        squarem.squarem = true;
        let all = [
            (self, true),
            (prior, !nmf),
            (first, true),
            (weights, plca),
            (multiplicative, plca && order == 2),
            (squarem, true),
        ];
        let known = all.into_iter().filter(|&(_, known)| known);
        known.map(|(setup, _)| setup).collect()
    }

    /// Whether rounding errors stay rounding errors. The length of an extrapolation is a ratio of small differences, and which
    /// of two steps is kept may hang on the last bit.
    pub(crate) fn is_smooth(&self) -> bool {
        !self.squarem
    }

    /// Whether no setting has a unit: a prior counts in the data's, and lengths of extrapolations measure `H` in it.
    pub(crate) fn has_no_unit(&self) -> bool {
        self.prior.is_none() && !(self.squarem && matches!(self.kind, Kind::Nmf(_)))
    }

    /// Whether modes are treated alike: the other models tell them apart, and multiplicative updates take them in turn.
    pub(crate) fn has_no_first_mode(&self) -> bool {
        self.kind == Kind::Plca && !self.freeze_first && !self.multiplicative
    }
}
