//! Blocks in files and back.

use nalgebra::DMatrix;
use plca_fit::blocks::FileLayout;

#[test]
fn arrays_become_the_blocks_that_they_were() {
    let block = DMatrix::from_fn(6, 2, |i, j| (10 * i + j) as f64);
    for (layout, extents) in [
        (FileLayout::Matrix, &[][..]),
        (FileLayout::Stack("kernel"), &[2, 3]),
        (FileLayout::Sides, &[]),
    ] {
        let shape = layout.shape(block.shape(), extents);
        let back = layout.block(&shape, &layout.values(&block));
        assert_eq!(back.as_ref(), Some(&block), "{layout:?}");
        assert_eq!(layout.block(&[5], &[0.0; 5]), None);
        assert_eq!(layout.block(&shape, &[0.0; 11]), None);
    }
    let column = block.columns(0, 1).into_owned();
    let values = FileLayout::Vector.values(&column);
    assert_eq!(FileLayout::Vector.block(&[6], &values), Some(column));
}

/// In C order: rows, components, and both sides beside each other; a kernel after the other.
#[test]
fn arrays_have_the_order_of_their_shapes() {
    let block = DMatrix::from_fn(6, 2, |i, j| (10 * i + j) as f64);
    let first = |layout: FileLayout| layout.values(&block)[..4].to_vec();
    assert_eq!(first(FileLayout::Matrix), [0.0, 1.0, 10.0, 11.0]);
    assert_eq!(first(FileLayout::Stack("kernel")), [0.0, 10.0, 20.0, 30.0]);
    assert_eq!(first(FileLayout::Sides), [0.0, 30.0, 1.0, 31.0]);
    assert_eq!(FileLayout::Sides.shape((6, 2), &[]), [3, 2, 2]);
    assert_eq!(
        FileLayout::Stack("kernel").shape((6, 2), &[2, 3]),
        [2, 2, 3]
    );
}
