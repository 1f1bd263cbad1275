//! Labels of axes: what follows from them.

use plca_fit::blocks::{Axes, Axis, FileLayout, Index};

#[test]
fn labels_say_where_components_and_samples_are() {
    use Axis::{Columns, None as Neither, Rows};
    use FileLayout::{Absent, Matrix, Sides, Stack, Vector};
    let kernel = Axes(Index::Kernel, Index::Component);
    let places = Axes(Index::Places, Index::Component);
    let signed = Axes(Index::SignedKernel, Index::Component);
    for (axes, components, samples, mode, layout, in_file) in [
        (Axes::WEIGHTS, Rows, Neither, None, Vector, Some(0)),
        (Axes::SINGLE, Neither, Neither, None, Absent, None),
        (Axes::factor(0), Columns, Neither, Some(0), Matrix, Some(1)),
        (Axes::factor(1), Columns, Rows, Some(1), Matrix, Some(1)),
        (
            Axes::coefficients(1),
            Rows,
            Columns,
            Some(1),
            Matrix,
            Some(0),
        ),
        (Axes::numbers(1), Neither, Rows, Some(1), Vector, None),
        (Axes::sides(0), Columns, Neither, Some(0), Sides, Some(1)),
        (kernel, Columns, Neither, None, Stack("kernel"), Some(0)),
        (places, Columns, Neither, None, Stack("places"), Some(0)),
        (signed, Columns, Neither, None, Stack("atom"), Some(0)),
    ] {
        assert_eq!(axes.components(), components, "{axes:?}");
        assert_eq!(axes.samples(1), samples, "{axes:?}");
        assert_eq!(axes.mode(), mode, "{axes:?}");
        assert_eq!(axes.layout(), layout, "{axes:?}");
        assert_eq!(axes.components_in_file(), in_file, "{axes:?}");
    }
}
