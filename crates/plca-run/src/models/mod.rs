//! Every model: what is said of it besides its settings and its arithmetic. A model is an `impl Kind` and one line of `models!`.

use crate::Entry;

/// The types of a model.
macro_rules! types {
    ($state:ident) => {
        type State<T: Scalar> = $state<T>;
        type Model<T: Scalar> = Self;

        fn typed<T: Scalar>(&self) -> &Self {
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

/// How a model explains new data along a dimension, all together or each observation alone.
macro_rules! explainer {
    ($model:ident, $learnt:ident, $along:ident, $components:expr, $blocks:expr) => {
        Ok(Explainer::of_each(
            ($along, $components),
            $blocks,
            move |data, how, each| {
                let how = how.along($along);
                Ok(match each {
                    true => Answer::Each($model.transform_each(&$learnt, data, &how)?),
                    false => $model.transform(&$learnt, data, &how)?.untyped().into(),
                })
            },
        ))
    };
}

/// Every model, by the file that has it.
macro_rules! models {
    ($($file:ident: $($model:ident),*;)*) => {
        $(mod $file;)*

        static MODELS: &[Entry] = &[$($(Entry::of::<$file::$model>()),*),*];
    };
}

models! {
    distributions: Plca, Plsa, PlcaVb, PlsaVb, Nmf;
    signed: Snmf, SnmfVb, SignedCp, SignedCpVb, ShiftedSnmf, ShiftedSnmfVb, Ding, KMeans;
    kernels: Shifted, Transformed;
    squared: Pntf, Ntf;
}

/// Every model.
pub fn models() -> &'static [Entry] {
    MODELS
}

/// The model of a name.
pub fn model(name: &str) -> Option<&'static Entry> {
    MODELS.iter().find(|entry| entry.name == name)
}
