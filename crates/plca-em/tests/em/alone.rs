//! What a program can write that depends on this crate alone, and imports all of it.

use plca_em::*;

#[test]
fn typed_and_untyped_runs_do_not_clash() -> Result<(), Box<dyn std::error::Error>> {
    let v = tensor::DenseTensor::new(
        vec![2, 2],
        vec![1.0, 2.0, 3.0, 4.0],
        tensor::Order::RowMajor,
    )?;
    let model = Plca::new(2).prior("factor_0", priors::Dirichlet::symmetric(1.5)?);
    let typed: Fit<PlcaState<f64>> = model.on(&v)?.run(Init::default(), &mut seed(0))?;
    let any: &dyn AnyModel<f64> = &model;
    let untyped: Fit<Parameters<f64>> = any.on(&v)?.run(Init::default(), &mut seed(0))?;
    assert_eq!(typed.state().parameters(), untyped.state());
    let factors: &[nalgebra::DMatrix<f64>] = typed.state().factors();
    assert_eq!(factors[0], *typed.state().factor(0));
    Ok(())
}
