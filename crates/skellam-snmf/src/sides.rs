//! Both sides of the atoms as one block, `T⁺` above `T⁻`.

use nalgebra::{DMatrix, DMatrixView};
use plca_tensor::{Real, normalise_columns};

/// The sides of the atoms of a state.
macro_rules! sides {
    ($state:ident) => {
        impl<T: Real> $state<T> {
            /// The positive side of the atoms, `T⁺`: an `F x K` matrix, `>= 0`.
            pub fn plus(&self) -> nalgebra::DMatrixView<'_, T> {
                let [plus, _] = crate::sides::views(self.atoms());
                plus
            }

            /// The negative side of the atoms, `T⁻`: an `F x K` matrix, `>= 0`.
            pub fn minus(&self) -> nalgebra::DMatrixView<'_, T> {
                let [_, minus] = crate::sides::views(self.atoms());
                minus
            }

            /// The signed atoms, `T⁺ - T⁻`: an `F x K` matrix.
            pub fn signed_atoms(&self) -> DMatrix<T> {
                self.plus() - self.minus()
            }
        }
    };
}
pub(crate) use sides;

/// `T⁺` above `T⁻`, `2F x K`.
pub(crate) fn stack<T: Real>(plus: &DMatrix<T>, minus: &DMatrix<T>) -> DMatrix<T> {
    let (f, k) = plus.shape();
    let mut both = DMatrix::zeros(2 * f, k);
    both.rows_mut(0, f).copy_from(plus);
    both.rows_mut(f, f).copy_from(minus);
    both
}

/// `T⁺` and `T⁻` of a block of `2F` rows.
pub(crate) fn views<T: Real>(both: &DMatrix<T>) -> [DMatrixView<'_, T>; 2] {
    let f = both.nrows() / 2;
    [both.rows(0, f), both.rows(f, f)]
}

/// The same, copied.
pub(crate) fn split<T: Real>(both: &DMatrix<T>) -> [DMatrix<T>; 2] {
    views(both).map(|side| side.into_owned())
}

/// Divides columns so large that their sum might not be finite by their largest entry.
pub(crate) fn tame<T: Real>(both: &mut DMatrix<T>) {
    let most = T::one() / (T::TINY * T::lit(4.0 * both.nrows().max(1) as f64));
    for mut column in both.column_iter_mut() {
        let largest = column.amax();
        if largest > most {
            column /= largest;
        }
    }
}

/// Divides every column by its sum, which a column of zeros has not; returns the sums.
pub(crate) fn normalise<T: Real>(both: &mut DMatrix<T>) -> Vec<T> {
    tame(both);
    normalise_columns(both)
}
