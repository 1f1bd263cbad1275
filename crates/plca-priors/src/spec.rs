//! Priors as data: what a caller, a command line or a file says of a block, before its shape and its scalar are known.

use std::any::Any;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use plca_tensor::Real;

use crate::table::{Parsed, number, refused};
use crate::{
    Dirichlet, Entries, Gamma, Penalty, PriorError, PriorRules, Priors, RatePrior, RatePriors,
    SimplexPrior,
};

/// A prior of a block. It has no scalar: every family of models makes of it what it needs.
///
/// A text has the form of the tables [`Priors`] and [`RatePriors`].
///
/// ```
/// use plca_priors::{Dirichlet, PriorSpec};
/// let text: PriorSpec = "dirichlet:2".parse()?;
/// assert_eq!(text, Dirichlet::symmetric(2.0)?.into());
/// assert!(text.simplex::<f32>((4, 2)).is_ok() && text.shapes().is_ok() && text.gamma().is_err());
/// # Ok::<(), plca_priors::PriorError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum PriorSpec {
    /// Shapes of Dirichlet laws.
    Dirichlet(Entries),
    /// Shapes and rates of gamma laws.
    Gamma(Entries, Entries),
    /// Penalties on rates and on their squares.
    Penalty(Penalty),
    /// Any other line of the tables, `name:settings`: it is read when the shape of the block is known.
    Named(String),
    /// A prior of a caller's own, or one of ours that a caller has made.
    Own(Own),
}

/// A prior as a value, of the scalars that it is for.
#[derive(Clone)]
pub struct Own {
    what: String,
    /// Each an `Arc<dyn SimplexPrior<T>>` or an `Arc<dyn RatePrior<T>>`.
    each: Vec<Arc<dyn Any + Send + Sync>>,
    is_rate: bool,
}

impl fmt::Debug for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

/// Clones are equal.
impl PartialEq for Own {
    fn eq(&self, other: &Self) -> bool {
        let pairs = self.each.iter().zip(&other.each);
        self.each.len() == other.each.len() && { pairs }.all(|(a, b)| Arc::ptr_eq(a, b))
    }
}

impl Own {
    fn take<P: ?Sized + 'static>(&self) -> Result<Arc<P>, PriorError> {
        let mut all = self.each.iter();
        let found = all.find_map(|any| any.downcast_ref::<Arc<P>>()).cloned();
        found.ok_or_else(|| refused(&self.what, "a prior for the numbers of the data"))
    }
}

/// A prior on distributions, of both scalars.
impl<P: SimplexPrior<f32> + SimplexPrior<f64> + 'static> From<P> for PriorSpec {
    fn from(prior: P) -> Self {
        if let Some(spec) = prior.spec() {
            return spec;
        }
        let what = format!("{prior:?}");
        let prior = Arc::new(prior);
        let single: Arc<dyn SimplexPrior<f32>> = prior.clone();
        let double: Arc<dyn SimplexPrior<f64>> = prior;
        Self::Own(Own {
            what,
            each: vec![Arc::new(single), Arc::new(double)],
            is_rate: false,
        })
    }
}

/// A prior on distributions of one scalar; data of the other are refused.
impl From<Arc<dyn SimplexPrior<f64>>> for PriorSpec {
    fn from(prior: Arc<dyn SimplexPrior<f64>>) -> Self {
        Self::simplex_of(prior)
    }
}

/// The same in single precision.
impl From<Arc<dyn SimplexPrior<f32>>> for PriorSpec {
    fn from(prior: Arc<dyn SimplexPrior<f32>>) -> Self {
        Self::simplex_of(prior)
    }
}

/// Shapes of Dirichlet laws.
impl From<Entries> for PriorSpec {
    fn from(shapes: Entries) -> Self {
        Self::Dirichlet(shapes)
    }
}

impl From<Gamma> for PriorSpec {
    fn from(gamma: Gamma) -> Self {
        match gamma.laws() {
            Some((shape, rate)) => Self::Gamma(shape, rate),
            None => Self::of_rates(gamma),
        }
    }
}

impl From<Penalty> for PriorSpec {
    fn from(penalty: Penalty) -> Self {
        Self::Penalty(penalty)
    }
}

impl PriorSpec {
    /// A prior on rates, of both scalars.
    pub fn of_rates(prior: impl RatePrior<f32> + RatePrior<f64> + 'static) -> Self {
        let what = format!("{prior:?}");
        let prior = Arc::new(prior);
        let single: Arc<dyn RatePrior<f32>> = prior.clone();
        let double: Arc<dyn RatePrior<f64>> = prior;
        Self::Own(Own {
            what,
            each: vec![Arc::new(single), Arc::new(double)],
            is_rate: true,
        })
    }

    /// A prior on distributions of one scalar alone; data of the other are refused.
    pub fn simplex_of<T: Real>(prior: impl SimplexPrior<T> + 'static) -> Self {
        if let Some(spec) = prior.spec() {
            return spec;
        }
        let what = format!("{prior:?}");
        let prior: Arc<dyn SimplexPrior<T>> = Arc::new(prior);
        Self::Own(Own {
            what,
            each: vec![Arc::new(prior)],
            is_rate: false,
        })
    }

    /// A prior on rates of one scalar alone; data of the other are refused.
    pub fn rate_of<T: Real>(prior: impl RatePrior<T> + 'static) -> Self {
        let what = format!("{prior:?}");
        let prior: Arc<dyn RatePrior<T>> = Arc::new(prior);
        Self::Own(Own {
            what,
            each: vec![Arc::new(prior)],
            is_rate: true,
        })
    }

    /// Whether it is a prior on rates, and none on distributions.
    pub fn is_of_rates(&self) -> bool {
        match self {
            Self::Dirichlet(_) => false,
            Self::Gamma(..) | Self::Penalty(_) => true,
            Self::Named(text) => is_named::<dyn RatePrior<f64>>(RatePriors::ALL, text),
            Self::Own(own) => own.is_rate,
        }
    }

    /// The M-step on columns that are distributions, of a block with these numbers of rows and columns.
    ///
    /// # Errors
    ///
    /// [`PriorError`] for a prior on rates, for text that is no prior, and for a block that it does not fit.
    pub fn simplex<T: Real>(&self, shape: (usize, usize)) -> Parsed<dyn SimplexPrior<T>> {
        let prior: Arc<dyn SimplexPrior<T>> = match self {
            Self::Dirichlet(shapes) => Arc::new(Dirichlet::of(shapes.clone())?),
            Self::Named(text) => return Priors::parse(text, shape),
            Self::Own(own) if !own.is_rate => own.take()?,
            other => return Err(refused(&other.to_string(), "a prior of distributions")),
        };
        prior.check(shape)?;
        Ok(prior)
    }

    /// The M-step on rates.
    ///
    /// # Errors
    ///
    /// As [`simplex`](Self::simplex), for a prior on distributions.
    pub fn rate<T: Real>(&self, shape: (usize, usize)) -> Parsed<dyn RatePrior<T>> {
        let prior: Arc<dyn RatePrior<T>> = match self {
            Self::Gamma(shape, rate) => Arc::new(Gamma::of(shape.clone(), rate.clone())?),
            Self::Penalty(penalty) => Arc::new(*penalty),
            Self::Named(text) => return RatePriors::parse(text, shape),
            Self::Own(own) if own.is_rate => own.take()?,
            other => return Err(refused(&other.to_string(), "a prior of rates")),
        };
        prior.check(shape)?;
        Ok(prior)
    }

    /// The shapes of Dirichlet laws, where nothing else will do, as in variational Bayes.
    ///
    /// # Errors
    ///
    /// [`PriorError::Text`] for any other prior.
    pub fn shapes(&self) -> Result<&Entries, PriorError> {
        match self {
            Self::Dirichlet(shapes) => Ok(shapes),
            other => Err(refused(
                &other.to_string(),
                "dirichlet:A, such as dirichlet:0.1",
            )),
        }
    }

    /// Shapes and rates of gamma laws, where nothing else will do.
    ///
    /// # Errors
    ///
    /// [`PriorError::Text`] for any other prior.
    pub fn gamma(&self) -> Result<(&Entries, &Entries), PriorError> {
        match self {
            Self::Gamma(shape, rate) => Ok((shape, rate)),
            other => Err(refused(
                &other.to_string(),
                "gamma:SHAPE,RATE, such as gamma:1,0.1",
            )),
        }
    }

    /// The weights of penalties, where nothing else will do.
    ///
    /// # Errors
    ///
    /// [`PriorError::Text`] for any other prior.
    pub fn penalty(&self) -> Result<Penalty, PriorError> {
        match self {
            Self::Penalty(penalty) => Ok(*penalty),
            other => Err(refused(
                &other.to_string(),
                "rate:L1[,L2], such as rate:0.1",
            )),
        }
    }
}

/// The text, as on a command line; arrays have none, and what a caller has made is named.
impl fmt::Display for PriorSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dirichlet(Entries::All(a)) => write!(f, "dirichlet:{a}"),
            Self::Gamma(Entries::All(a), Entries::All(b)) => write!(f, "gamma:{a},{b}"),
            Self::Penalty(penalty) => write!(f, "rate:{penalty}"),
            Self::Named(text) => f.write_str(text),
            Self::Dirichlet(_) => f.write_str("dirichlet of an array"),
            Self::Gamma(..) => f.write_str("gamma of arrays"),
            Self::Own(own) => write!(f, "{own:?}"),
        }
    }
}

impl FromStr for PriorSpec {
    type Err = PriorError;

    fn from_str(text: &str) -> Result<Self, PriorError> {
        let (name, settings) = text.split_once(':').unwrap_or((text, ""));
        match name {
            "dirichlet" => Ok(Self::Dirichlet(Entries::All(number(settings)?))),
            "gamma" => {
                let both = settings.split_once(',');
                let (shape, rate) = both.ok_or_else(|| refused(text, "gamma:SHAPE,RATE"))?;
                let (shape, rate) = (number(shape)?, number(rate)?);
                Ok(Self::Gamma(Entries::All(shape), Entries::All(rate)))
            }
            "rate" => Ok(Self::Penalty(settings.parse()?)),
            _ if is_named::<dyn SimplexPrior<f64>>(Priors::ALL, text)
                || is_named::<dyn RatePrior<f64>>(RatePriors::ALL, text) =>
            {
                Ok(Self::Named(text.into()))
            }
            _ => {
                let simplex = Priors::<f64>::ALL.iter().map(|e| (e.name, e.form));
                let all = simplex.chain(RatePriors::<f64>::ALL.iter().map(|e| (e.name, e.form)));
                let forms: Vec<_> = all.map(|(name, form)| format!("{name}:{form}")).collect();
                Err(refused(text, format!("one of {}", forms.join(", "))))
            }
        }
    }
}

fn is_named<P: PriorRules + ?Sized>(all: &[crate::PriorEntry<P>], text: &str) -> bool {
    let name = text.split(':').next();
    all.iter().any(|entry| Some(entry.name) == name)
}
