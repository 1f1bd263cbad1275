//! Every model: what is said of it besides its settings and its arithmetic. A model is an `impl Kind` and one line of `models!`.

use crate::ModelEntry;

/// The types of a model.
macro_rules! types {
    ($state:ident) => {
        type State<T: Scalar> = $state<T>;
        type Model<T: Scalar> = Self;

        fn typed<T: Scalar>(&self) -> &Self {
            self
        }

        fn into_typed<T: Scalar>(self) -> Self {
            self
        }
    };
}

/// The settings of a model that has nothing but those of its struct.
macro_rules! by_name {
    ($components:ident => $new:expr) => {
        fn specs() -> Vec<SettingSpec> {
            <Self as Named>::specs()
        }

        fn build($components: usize, options: &Options, _: &[usize]) -> Result<Self, RunError> {
            named($new, options)
        }
    };
}

/// A model with priors.
macro_rules! priors {
    () => {
        fn with_prior(self, block: &str, prior: PriorSpec) -> Self {
            self.prior(block, prior)
        }
    };
}

/// A model of shards.
macro_rules! sharded {
    () => {
        fn sharded<T: Scalar>(&self) -> Option<&dyn Sharded<T>> {
            Some(self)
        }
    };
}

/// A model of streams.
macro_rules! streamed {
    () => {
        fn streamed<T: Scalar>(&self, how: &Stream) -> Option<Box<dyn Learner<T>>> {
            Some(how.of(self.clone()))
        }
    };
}

/// How a model explains new data under what it has learnt: all observations together, and `each` as a batch of one where that is something else.
macro_rules! explains {
    (|$model:ident, $learnt:ident, $data:ident, $how:ident| $all:expr $(, each: $each:expr)?) => {
        fn explain<T: Scalar>(
            &self,
            $learnt: &Self::State<T>,
            $data: &dyn Data<T>,
            $how: &Transform,
            each: bool,
        ) -> Result<Answer<T>, FitError> {
            let ($model, _) = (self, each);
            $(if each {
                return Ok(Answer::Each($each));
            })?
            Ok($all.untyped().into())
        }
    };
}

/// Every model, by the file that has it.
macro_rules! models {
    ($($file:ident: $($model:ident),*;)*) => {
        $(mod $file;)*

        static MODELS: &[ModelEntry] = &[$($(ModelEntry::of::<$file::$model>()),*),*];
    };
}

models! {
    distributions: Plca, Plsa, PlcaVb, PlsaVb, Nmf;
    signed: Snmf, SnmfVb, SignedCp, SignedCpVb, ShiftedSnmf, ShiftedSnmfVb, Ding, KMeans;
    kernels: Shifted, Transformed;
    squared: Pntf, Ntf;
}

/// Every model.
pub fn models() -> &'static [ModelEntry] {
    MODELS
}

/// The model of a name.
pub fn model(name: &str) -> Option<&'static ModelEntry> {
    MODELS.iter().find(|entry| entry.name == name)
}
