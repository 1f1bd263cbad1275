//! Tells the program what it was built for, which Cargo knows here alone.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = std::env::var("TARGET").unwrap_or_default();
    println!("cargo::rustc-env=TARGET={target}");
}
