//! Says in one line what to install where MPI or libclang is missing, before the crate `mpi` fails at it.

#[cfg(not(feature = "mpi"))]
fn main() {}

#[cfg(feature = "mpi")]
fn main() {
    println!("cargo::rerun-if-env-changed=PATH");
    let missing = [
        (
            "an MPI library with mpicc",
            build_probe_mpi::probe().is_err(),
        ),
        ("libclang", clang_sys::load().is_err()),
    ];
    let missing = missing.into_iter().filter(|&(_, missing)| missing);
    let missing: Vec<_> = missing.map(|(what, _)| what).collect();
    if !missing.is_empty() {
        let missing = missing.join(" and ");
        println!(
            "cargo::error=no {missing} here: apt install openmpi-bin libopenmpi-dev libclang-dev, or module load what your cluster has"
        );
    }
}
